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
    "Batch": "base.batch",
    "Bernoulli": "naive_bayes.event_models",
    "BernoulliNB": "naive_bayes.estimators",
    "Beta": "naive_bayes.event_models.smoothing",
    "Binned": "naive_bayes.event_models",
    "Categorical": "naive_bayes.event_models",
    "CategoricalNB": "naive_bayes.estimators",
    "Categories": "naive_bayes.features.blocks",
    "Category": "naive_bayes.features.tokenizer",
    "CharacterGrams": "naive_bayes.features.tokenizer",
    "ComplementNB": "naive_bayes.estimators",
    "Dirichlet": "naive_bayes.event_models.smoothing",
    "EVERY_FIELD": "naive_bayes.model.view",
    "Edges": "naive_bayes.features.tokenizer",
    "FallbackPrior": "naive_bayes.event_models.smoothing",
    "FixedPrior": "naive_bayes.event_models.smoothing",
    "Flags": "naive_bayes.features.blocks",
    "Gaussian": "naive_bayes.event_models",
    "GaussianDiscriminant": "naive_bayes.estimators",
    "GaussianNB": "naive_bayes.estimators",
    "Laplace": "naive_bayes.event_models.smoothing",
    "LearnedPrior": "naive_bayes.event_models.smoothing",
    "MixedNB": "naive_bayes.estimators",
    "Multinomial": "naive_bayes.event_models",
    "MultinomialNB": "naive_bayes.estimators",
    "Multivariate": "naive_bayes.event_models",
    "NaiveBayes": "naive_bayes.model.naive_bayes",
    "NoSmoothing": "naive_bayes.event_models.smoothing",
    "Number": "naive_bayes.features.tokenizer",
    "Numbers": "naive_bayes.features.blocks",
    "Scores": "base.batch",
    "TEXT_ONLY": "naive_bayes.model.view",
    "Terms": "naive_bayes.features.tokenizer",
    "Tokenizer": "naive_bayes.features.tokenizer",
    "UniformPrior": "naive_bayes.event_models.smoothing",
    "View": "naive_bayes.model.view",
    "WordPairs": "naive_bayes.features.tokenizer",
    "Words": "naive_bayes.features.tokenizer",
}

__all__ = [*sorted(_ROOMS), "__version__"]  # noqa: PLE0604 - the names are strings


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: river alone takes most of a second."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
