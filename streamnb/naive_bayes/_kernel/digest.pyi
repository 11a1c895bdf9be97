# Nothing here is for Python: `counts` hashes its tokens with it.
