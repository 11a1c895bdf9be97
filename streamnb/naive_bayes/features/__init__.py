"""Features: what a model counts in a message, that is tokens, categories, flags and numbers.

These modules know the fields of one message and how a reader turns them into features: the alphabet and the
tokenizer split text, `readers` declares which fields a view reads and how, `values` checks the values it
finds. They must not know what is done with the features: no class, label, statistic or score.
"""
