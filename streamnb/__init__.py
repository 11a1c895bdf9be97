"""streamnb: score and learn from message streams in real time with naive Bayes.

>>> from streamnb import NaiveBayes
>>> model = NaiveBayes()
>>> model.learn_one({"text": "win money now"}, "spam")
>>> model.learn_one({"text": "lunch at noon"}, "ham")
>>> model.predict_one({"text": "money"})
'spam'
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_ROOMS = {
    "Batch": "columns",
    "Bernoulli": "event_models",
    "BernoulliNB": "classifiers",
    "Beta": "smoothing",
    "Binned": "event_models",
    "Categorical": "event_models",
    "CategoricalNB": "classifiers",
    "Categories": "blocks",
    "Category": "tokens",
    "CharacterGrams": "tokens",
    "ComplementNB": "classifiers",
    "Dirichlet": "smoothing",
    "EVERY_FIELD": "view",
    "Edges": "tokens",
    "FallbackPrior": "smoothing",
    "FixedPrior": "smoothing",
    "Flags": "blocks",
    "Gaussian": "event_models",
    "GaussianDiscriminant": "classifiers",
    "GaussianNB": "classifiers",
    "Laplace": "smoothing",
    "LearnedPrior": "smoothing",
    "MixedNB": "classifiers",
    "Multinomial": "event_models",
    "MultinomialNB": "classifiers",
    "Multivariate": "event_models",
    "NaiveBayes": "naive_bayes",
    "NoSmoothing": "smoothing",
    "Number": "tokens",
    "Numbers": "blocks",
    "Scores": "columns",
    "TEXT_ONLY": "view",
    "Terms": "tokens",
    "Tokenizer": "tokens",
    "UniformPrior": "smoothing",
    "View": "view",
    "WordPairs": "tokens",
    "Words": "tokens",
}

__all__ = [*sorted(_ROOMS), "__version__"]  # noqa: PLE0604 - the names are strings


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: river alone takes most of a second."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
