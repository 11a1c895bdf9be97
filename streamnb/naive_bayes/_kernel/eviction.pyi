# Nothing here is for Python: which tokens a store lets go of, for the room `counts`.
