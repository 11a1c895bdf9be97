# Nothing here is for Python: `step` reads batches with it.
