# Nothing here is for Python: what is said of a store's tokens, for the room `counts`.
