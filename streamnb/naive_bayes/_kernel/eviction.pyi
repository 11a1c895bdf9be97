# Nothing here is for Python: `counts` asks it for the tokens to evict.
