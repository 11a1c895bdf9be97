"""The model put together: views, state, one step per message, sums that merge and unlearn, samples:
`NaiveBayes`.

It knows features, statistics, event models and the posterior, and chooses between plain and compiled twins.
It must not know records, offsets, files or settings tables.
"""
