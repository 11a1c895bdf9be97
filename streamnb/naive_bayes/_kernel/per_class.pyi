# Nothing here is for Python: the base class of `moments` and `field_totals`.
