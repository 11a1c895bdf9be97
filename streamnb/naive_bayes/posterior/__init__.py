"""Combines the evidence of all views into a posterior, calibrates it and explains it.

It weights the evidence that event models return. It must not know fields, tokenizers or views.
"""
