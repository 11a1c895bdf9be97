"""streamnb: score and learn from message streams in real time with naive Bayes.

>>> from streamnb import NaiveBayes
>>> model = NaiveBayes()
>>> model.learn_one({"text": "win money now"}, "spam")
>>> model.learn_one({"text": "lunch at noon"}, "ham")
>>> model.predict_one({"text": "money"})
'spam'

A record's path through the packages: `transports` reads it, `wire` decodes it to a message, `naive_bayes`
scores and learns the message, `wire` encodes the score, `transports` publishes it. `engine` is the loop
around these steps, and `storage` keeps what was learned. `evaluation` measures scores. `config` builds
the engine from a settings file, and `cli` is the command line. `base` has the values and Protocols that all
packages share.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamnb.base import Batch as Batch
    from streamnb.base import Scores as Scores
    from streamnb.naive_bayes import EVERY_FIELD as EVERY_FIELD
    from streamnb.naive_bayes import TEXT_ONLY as TEXT_ONLY
    from streamnb.naive_bayes import Bernoulli as Bernoulli
    from streamnb.naive_bayes import BernoulliNB as BernoulliNB
    from streamnb.naive_bayes import Beta as Beta
    from streamnb.naive_bayes import Binned as Binned
    from streamnb.naive_bayes import Categorical as Categorical
    from streamnb.naive_bayes import CategoricalNB as CategoricalNB
    from streamnb.naive_bayes import Categories as Categories
    from streamnb.naive_bayes import Category as Category
    from streamnb.naive_bayes import CharacterGrams as CharacterGrams
    from streamnb.naive_bayes import ComplementNB as ComplementNB
    from streamnb.naive_bayes import Dirichlet as Dirichlet
    from streamnb.naive_bayes import Ends as Ends
    from streamnb.naive_bayes import FallbackPrior as FallbackPrior
    from streamnb.naive_bayes import FixedPrior as FixedPrior
    from streamnb.naive_bayes import Flags as Flags
    from streamnb.naive_bayes import Gaussian as Gaussian
    from streamnb.naive_bayes import GaussianDiscriminant as GaussianDiscriminant
    from streamnb.naive_bayes import GaussianNB as GaussianNB
    from streamnb.naive_bayes import Laplace as Laplace
    from streamnb.naive_bayes import LaplacePerToken as LaplacePerToken
    from streamnb.naive_bayes import LearnedPrior as LearnedPrior
    from streamnb.naive_bayes import Markov as Markov
    from streamnb.naive_bayes import Multinomial as Multinomial
    from streamnb.naive_bayes import MultinomialNB as MultinomialNB
    from streamnb.naive_bayes import Multivariate as Multivariate
    from streamnb.naive_bayes import NaiveBayes as NaiveBayes
    from streamnb.naive_bayes import NoSmoothing as NoSmoothing
    from streamnb.naive_bayes import Number as Number
    from streamnb.naive_bayes import Numbers as Numbers
    from streamnb.naive_bayes import Shapes as Shapes
    from streamnb.naive_bayes import Strings as Strings
    from streamnb.naive_bayes import Terms as Terms
    from streamnb.naive_bayes import Tokenizer as Tokenizer
    from streamnb.naive_bayes import UniformPrior as UniformPrior
    from streamnb.naive_bayes import View as View
    from streamnb.naive_bayes import WordPairs as WordPairs
    from streamnb.naive_bayes import Words as Words
    from streamnb.naive_bayes import load as load

__version__ = "0.1.0"

__all__ = [
    "EVERY_FIELD",
    "TEXT_ONLY",
    "Batch",
    "Bernoulli",
    "BernoulliNB",
    "Beta",
    "Binned",
    "Categorical",
    "CategoricalNB",
    "Categories",
    "Category",
    "CharacterGrams",
    "ComplementNB",
    "Dirichlet",
    "Ends",
    "FallbackPrior",
    "FixedPrior",
    "Flags",
    "Gaussian",
    "GaussianDiscriminant",
    "GaussianNB",
    "Laplace",
    "LaplacePerToken",
    "LearnedPrior",
    "Markov",
    "Multinomial",
    "MultinomialNB",
    "Multivariate",
    "NaiveBayes",
    "NoSmoothing",
    "Number",
    "Numbers",
    "Scores",
    "Shapes",
    "Strings",
    "Terms",
    "Tokenizer",
    "UniformPrior",
    "View",
    "WordPairs",
    "Words",
    "__version__",
    "load",
]


def __getattr__(name: str) -> object:
    """Import a public name at its first use, because importing numpy and river takes most of a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "base" if name in {"Batch", "Scores"} else "naive_bayes"
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
