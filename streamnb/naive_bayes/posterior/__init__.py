"""Combines the evidence of all views into a posterior, calibrates it and explains it.

`odds` turns joint log likelihoods into the posterior and its odds; `calibrated_head` learns how much weight
the evidence of each view deserves; `explanation` lists what each part of a message contributed.

The package weights the evidence that event models return. It must not know fields, tokenizers or views.
"""
