# Nothing here is for Python: the alphabet and the tokenizer are C.
