"""The model: naive Bayes over any views of a message, learned and unlearned one message at a time.

A view is a reader of some fields of a message, with the event model for what it reads; a model has one or
more. A message passes through the subpackages in this order: `features` reads tokens and numbers from its
fields, `statistics` counts them per class, `event_models` turn counts into evidence, `posterior` combines
the evidence of all views, `model` runs these steps on one state, and `estimators` offer the model as
`NaiveBayes` and as the classic estimators, all of them subclasses of river's `Classifier`. Each imports
only earlier ones. `_kernel`, between `posterior` and `model`, holds compiled twins of some of these
modules; the line `# Twin of:` in each Cython file names the modules that it mirrors, if any.

The package knows batches, scores and the snapshot file. It must not know that there is a stream: no record,
offset, topic or TOML.
"""

from streamnb.naive_bayes._kernel import compiled, memory, reason
from streamnb.naive_bayes.estimators import (
    ESTIMATOR,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    Estimator,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
    load,
)
from streamnb.naive_bayes.event_models import (
    Bernoulli,
    Binned,
    Categorical,
    EventModel,
    Gaussian,
    Generative,
    Markov,
    Multinomial,
    Multivariate,
    OwnEventModel,
    Statistic,
)
from streamnb.naive_bayes.event_models.priors import (
    FallbackPrior,
    FixedPrior,
    LearnedPrior,
    Prior,
    UniformPrior,
)
from streamnb.naive_bayes.event_models.smoothing import (
    Beta,
    Dirichlet,
    Laplace,
    LaplacePerToken,
    NoSmoothing,
)
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.readers import (
    Categories,
    Category,
    CharacterGrams,
    Ends,
    Flags,
    Number,
    Numbers,
    OwnReader,
    Reader,
    Terms,
    TextReader,
    WordPairs,
    Words,
)
from streamnb.naive_bayes.features.shapes import Shapes
from streamnb.naive_bayes.features.strings import Strings
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.compiled import slowed_by
from streamnb.naive_bayes.model.growing import Growth, grow, setting_differences
from streamnb.naive_bayes.model.informative import most_informative_tokens
from streamnb.naive_bayes.model.plain import parameters
from streamnb.naive_bayes.model.relabelling import relabel
from streamnb.naive_bayes.model.state import HeadKind, State
from streamnb.naive_bayes.model.view import EVERY_FIELD, TEXT_ONLY, View
from streamnb.naive_bayes.posterior.odds import softmax
from streamnb.naive_bayes.statistics.budget import BYTES_MAX, BYTES_MIN
from streamnb.naive_bayes.statistics.forgetting import Forgetting

__all__ = [
    "BYTES_MAX",
    "BYTES_MIN",
    "ESTIMATOR",
    "EVERY_FIELD",
    "TEXT_ONLY",
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
    "Estimator",
    "EventModel",
    "FallbackPrior",
    "FixedPrior",
    "Flags",
    "Forgetting",
    "Gaussian",
    "GaussianDiscriminant",
    "GaussianNB",
    "Generative",
    "Growth",
    "HeadKind",
    "Laplace",
    "LaplacePerToken",
    "LearnedPrior",
    "Markov",
    "Message",
    "Multinomial",
    "MultinomialNB",
    "Multivariate",
    "NaiveBayes",
    "NoSmoothing",
    "Number",
    "Numbers",
    "OwnEventModel",
    "OwnReader",
    "Prior",
    "Reader",
    "Shapes",
    "State",
    "Statistic",
    "Strings",
    "Terms",
    "TextReader",
    "Tokenizer",
    "UniformPrior",
    "View",
    "WordPairs",
    "Words",
    "compiled",
    "grow",
    "load",
    "memory",
    "most_informative_tokens",
    "parameters",
    "reason",
    "relabel",
    "setting_differences",
    "slowed_by",
    "softmax",
]
