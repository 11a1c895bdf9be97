"""Evidence of all views to the posterior: log odds, the calibrated head, explanations.

It knows the event models' evidence and how much of it to believe. It must not know fields, tokenizers or
views.
"""
