"""`NaiveBayes`: holds views and their state, learns or scores one message per step, merges, unlearns and
samples.

It knows features, statistics, event models and the posterior, and chooses between plain and compiled twins.
It must not know records, offsets, files or settings tables.
"""
