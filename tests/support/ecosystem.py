"""Every transformer and meta model of river around every estimator, each beside river's own peer.

``python -m tests.support.ecosystem`` tries all combinations and prints the counts; the tests try every
`STRIDE`-th. A combination is a part of river, an estimator and a stream. It works if every message of the
stream can be scored and learned, and every score is a finite share.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from river import api

from streamnb.cli.demo.mailbox import mailbox
from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
)

river: Any = api  # half of it has no types
STRIDE = 29
ROWS = 30

Make = Callable[[], Any]
Wrap = Callable[[Any], Any]
Pairs = list[tuple[Any, Any]]

MODELS: dict[str, tuple[Make, Make]] = {
    "MultinomialNB": (MultinomialNB, river.naive_bayes.MultinomialNB),
    "ComplementNB": (ComplementNB, river.naive_bayes.ComplementNB),
    "BernoulliNB": (BernoulliNB, river.naive_bayes.BernoulliNB),
    "GaussianNB": (GaussianNB, river.naive_bayes.GaussianNB),
    "CategoricalNB": (CategoricalNB, river.naive_bayes.MultinomialNB),
    "GaussianDiscriminant": (GaussianDiscriminant, river.naive_bayes.GaussianNB),
    "GaussianDiscriminant, class": (lambda: GaussianDiscriminant("class"), river.naive_bayes.GaussianNB),
    "NaiveBayes": (NaiveBayes, river.naive_bayes.GaussianNB),
    "NaiveBayes, calibrated": (lambda: NaiveBayes(head="calibrated"), river.naive_bayes.GaussianNB),
}
"""Each estimator and its peer. What river has no estimator for has the nearest one, or one of numbers."""


@cache
def stream(name: str, rows: int = ROWS) -> Pairs:
    """Return the first messages of a stream, with their labels."""
    if name == "numbers":  # from 0 to 1; two classes
        return list(river.datasets.Phishing().take(rows))
    if name == "segments":  # numbers, some negative; seven classes in turn
        pairs = list(river.datasets.ImageSegments())
        return pairs[:: len(pairs) // rows][:rows]
    mails = [(m["text"], m["label"]) for m in mailbox(0, 3 * rows) if m["label"] and m["text"]][:rows]
    if name == "mails":
        return [({"text": text}, label) for text, label in mails]
    if name == "texts":
        return list(mails)
    if name == "words":
        return [(dict(Counter(text.lower().split())), label) for text, label in mails]
    if name == "categories":
        return [
            ({"day": "mtwtfss"[i % 7], "host": f"h{i * i % 5}", "urgent": i % 3 == 0}, i % 3 == i % 2)
            for i in range(rows)
        ]
    if name == "mixed":
        return [
            ({"text": text, "amount": i * 7 % 11 / 2, "day": "mtwtfss"[i % 7], "urgent": i % 3 == 0}, label)
            for i, (text, label) in enumerate(mails)
        ]
    flags = [({f"f{j}": i >> j & 1 for j in range(4)} | {"n": i * 7 % 11}, i) for i in range(rows)]
    return [(x, {"odd": i % 2 == 1, "third": i % 3 == 0}) for x, i in flags]  # "tags": two labels each


class Part(NamedTuple):
    """A part of river: how it goes around a model, and the streams that suit it."""

    wrap: Wrap
    streams: tuple[str, ...]


NUMBERS = ("numbers", "segments")
TWO_CLASSES = ("numbers", "words", "categories", "mixed")
ALL = ("segments", *TWO_CLASSES)


def before(*transformers: Any) -> Wrap:  # noqa: ANN401
    """Return the pipeline that has fresh transformers in front of a model."""
    return lambda model: river.compose.Pipeline(*(made.clone() for made in transformers), model)


def _doubled(x: dict[str, Any]) -> dict[str, Any]:
    return {**x, "again": next(iter(x.values()), 0)}


TRANSFORMERS: dict[str, Part] = {
    "AdaptiveStandardScaler": Part(before(river.preprocessing.AdaptiveStandardScaler()), NUMBERS),
    "Binarizer": Part(before(river.preprocessing.Binarizer()), NUMBERS),
    "FeatureHasher": Part(before(river.preprocessing.FeatureHasher(16, seed=1)), (*ALL, "mails")),
    "GapEncoder": Part(before(river.preprocessing.GapEncoder(n_components=3, seed=1)), ("texts",)),
    "GaussianRandomProjector": Part(before(river.preprocessing.GaussianRandomProjector(3, seed=1)), NUMBERS),
    "SparseRandomProjector": Part(before(river.preprocessing.SparseRandomProjector(3, seed=1)), NUMBERS),
    "LDA": Part(
        before(
            river.feature_extraction.BagOfWords(),
            river.preprocessing.LDA(n_components=3, number_of_documents=60, seed=1),
        ),
        ("texts",),
    ),
    "MaxAbsScaler": Part(before(river.preprocessing.MaxAbsScaler()), NUMBERS),
    "MinMaxScaler": Part(before(river.preprocessing.MinMaxScaler()), NUMBERS),
    "Normalizer": Part(before(river.preprocessing.Normalizer()), (*NUMBERS, "words")),
    "OneHotEncoder": Part(before(river.preprocessing.OneHotEncoder()), ("numbers", "categories")),
    "OneHotEncoder, dropping": Part(
        before(river.preprocessing.OneHotEncoder(drop_zeros=True, drop_first=True)),
        ("numbers", "categories"),
    ),
    "OrdinalEncoder": Part(before(river.preprocessing.OrdinalEncoder()), ("numbers", "categories")),
    "PreviousImputer": Part(before(river.preprocessing.PreviousImputer()), ALL),
    "RobustScaler": Part(before(river.preprocessing.RobustScaler()), NUMBERS),
    "StandardScaler": Part(before(river.preprocessing.StandardScaler()), NUMBERS),
    "StatImputer": Part(before(river.preprocessing.StatImputer()), ALL),
    "BagOfWords": Part(before(river.feature_extraction.BagOfWords()), ("texts",)),
    "BagOfWords, on a field": Part(
        before(river.feature_extraction.BagOfWords(on="text")), ("mails", "mixed")
    ),
    "BagOfWords, pairs": Part(before(river.feature_extraction.BagOfWords(ngram_range=(1, 2))), ("texts",)),
    "TFIDF": Part(before(river.feature_extraction.TFIDF()), ("texts",)),
    "TFIDF, on a field": Part(before(river.feature_extraction.TFIDF(on="text")), ("mails", "mixed")),
    "Agg": Part(before(river.feature_extraction.Agg("amount", "day", river.stats.Mean())), ("mixed",)),
    "TargetAgg": Part(before(river.feature_extraction.TargetAgg("day", river.stats.Mean())), ("categories",)),
    "PolynomialExtender": Part(before(river.feature_extraction.PolynomialExtender()), ("numbers",)),
    "RBFSampler": Part(before(river.feature_extraction.RBFSampler(n_components=5, seed=1)), NUMBERS),
    "RandomTreesEmbedding": Part(
        before(river.feature_extraction.RandomTreesEmbedding(3, 3, seed=1)), NUMBERS
    ),
    "PoissonInclusion": Part(before(river.feature_selection.PoissonInclusion(0.3, seed=1)), ALL),
    "SelectKBest": Part(
        before(river.feature_selection.SelectKBest(river.stats.PearsonCorr(), k=3)), ("numbers",)
    ),
    "VarianceThreshold": Part(before(river.feature_selection.VarianceThreshold()), (*NUMBERS, "words")),
    "Select": Part(before(river.compose.Select("popup_window", "age_of_domain")), ("numbers",)),
    "Select, of mixed fields": Part(before(river.compose.Select("day", "urgent")), ("categories", "mixed")),
    "Discard": Part(before(river.compose.Discard("text", "day", "age_of_domain")), ALL),
    "SelectType": Part(before(river.compose.SelectType(float, int)), ALL),
    "Prefixer": Part(before(river.compose.Prefixer("p_")), ALL),
    "Suffixer": Part(before(river.compose.Suffixer("_s")), ALL),
    "Renamer": Part(before(river.compose.Renamer({"day": "weekday"})), ALL),
    "FuncTransformer": Part(before(river.compose.FuncTransformer(_doubled)), ALL),
    "Grouper": Part(
        before(river.compose.Grouper(river.preprocessing.StandardScaler(), "popup_window")),
        ("numbers",),
    ),
    "TransformerUnion": Part(
        before(
            river.compose.TransformerUnion(
                river.compose.SelectType(str),
                river.compose.SelectType(float, int) | river.preprocessing.MaxAbsScaler(),
            )
        ),
        ALL,
    ),
    "TransformerUnion, words and flags": Part(
        before(
            river.compose.TransformerUnion(
                river.feature_extraction.BagOfWords(on="text"), river.compose.Select("urgent")
            )
        ),
        ("mixed",),
    ),
    "TransformerProduct": Part(
        before(
            river.compose.TransformerProduct(
                river.compose.Select("age_of_domain"), river.compose.Select("popup_window")
            )
        ),
        ("numbers",),
    ),
    "two scalers": Part(
        before(river.preprocessing.StandardScaler(), river.preprocessing.MaxAbsScaler()), NUMBERS
    ),
    "QuantileFilter": Part(
        before(river.anomaly.QuantileFilter(river.anomaly.HalfSpaceTrees(3, 3, 10, seed=1), q=0.9)),
        NUMBERS,
    ),
    "ThresholdFilter": Part(
        before(river.anomaly.ThresholdFilter(river.anomaly.LODA(seed=1), threshold=2.0)), NUMBERS
    ),
}


def _leveraging(how: str) -> Wrap:
    return lambda m: river.ensemble.LeveragingBaggingClassifier(m, 3, bagging_method=how, seed=1)


def _patches(how: str) -> Wrap:
    return lambda m: river.ensemble.SRPClassifier(m, 3, training_method=how, seed=1)


_SHARES = dict.fromkeys([False, True], 0.5) | dict.fromkeys(["spam", "ham"], 0.5)
WRAPPERS: dict[str, Part] = {
    "alone": Part(lambda m: m, (*ALL, "texts", "mails")),
    "ADWINBagging": Part(lambda m: river.ensemble.ADWINBaggingClassifier(m, 3, seed=1), ALL),
    "ADWINBoosting": Part(lambda m: river.ensemble.ADWINBoostingClassifier(m, 3, seed=1), ALL),
    "AdaBoost": Part(lambda m: river.ensemble.AdaBoostClassifier(m, 3, seed=1), ALL),
    "BOLE": Part(lambda m: river.ensemble.BOLEClassifier(m, 3, seed=1), ALL),
    "Bagging": Part(lambda m: river.ensemble.BaggingClassifier(m, 3, seed=1), ALL),
    **{
        f"LeveragingBagging, {how}": Part(_leveraging(how), ALL)
        for how in ("bag", "me", "half", "wt", "subag")
    },
    **{
        f"SRP, {how}": Part(_patches(how), (*NUMBERS, "mixed"))
        for how in ("subspaces", "resampling", "patches")
    },
    "Stacking": Part(
        lambda m: river.ensemble.StackingClassifier(
            [m, river.dummy.PriorClassifier()], river.linear_model.SoftmaxRegression(), include_features=False
        ),
        ALL,
    ),
    "Stacking, on top": Part(
        lambda m: river.ensemble.StackingClassifier(
            [river.dummy.PriorClassifier(), river.dummy.NoChangeClassifier()], m
        ),
        ALL,
    ),
    "Voting": Part(lambda m: river.ensemble.VotingClassifier([m, river.dummy.PriorClassifier()]), ALL),
    "Voting, of labels": Part(
        lambda m: river.ensemble.VotingClassifier(
            [m, river.dummy.PriorClassifier()], use_probabilities=False
        ),
        ALL,
    ),
    "DriftRetraining": Part(
        lambda m: river.drift.DriftRetrainingClassifier(m, river.drift.binary.DDM(warm_start=5)), ALL
    ),
    "DriftRetraining, at once": Part(
        lambda m: river.drift.DriftRetrainingClassifier(m, river.drift.ADWIN(), train_in_background=False),
        ALL,
    ),
    "DriftRetraining, by the clock": Part(
        lambda m: river.drift.DriftRetrainingClassifier(
            m, river.drift.DummyDriftDetector(t_0=15, seed=1), train_in_background=False
        ),
        ALL,
    ),
    "RandomOverSampler": Part(lambda m: river.imblearn.RandomOverSampler(m, _SHARES, seed=1), TWO_CLASSES),
    "RandomUnderSampler": Part(lambda m: river.imblearn.RandomUnderSampler(m, _SHARES, seed=1), TWO_CLASSES),
    "RandomSampler": Part(lambda m: river.imblearn.RandomSampler(m, _SHARES, 0.8, seed=1), TWO_CLASSES),
    "HardSampling": Part(lambda m: river.imblearn.HardSamplingClassifier(m, 10, 0.3, seed=1), ALL),
    "OneVsRest": Part(river.multiclass.OneVsRestClassifier, ALL),
    "OneVsOne": Part(river.multiclass.OneVsOneClassifier, ALL),
    "OutputCode": Part(lambda m: river.multiclass.OutputCodeClassifier(m, 5, seed=1), ALL),
    "EntropySampler": Part(lambda m: river.active.EntropySampler(m, seed=1), ALL),
    "BanditClassifier": Part(
        lambda m: river.model_selection.BanditClassifier(
            [m, river.dummy.PriorClassifier()],
            river.metrics.Accuracy(),
            river.bandit.EpsilonGreedy(0.3, seed=1),
        ),
        ALL,
    ),
    "SuccessiveHalving": Part(
        lambda m: river.model_selection.SuccessiveHalvingClassifier(
            [m, river.dummy.PriorClassifier()], river.metrics.Accuracy(), budget=30
        ),
        ALL,
    ),
    "ClassifierChain": Part(
        lambda m: river.multioutput.ClassifierChain(m, order=["odd", "third"]), ("tags",)
    ),
    "MonteCarloClassifierChain": Part(
        lambda m: river.multioutput.MonteCarloClassifierChain(m, m=3, seed=1), ("tags",)
    ),
    "ProbabilisticClassifierChain": Part(river.multioutput.ProbabilisticClassifierChain, ("tags",)),
    "MultiClassEncoder": Part(river.multioutput.MultiClassEncoder, ("tags",)),
    "PerOutputClassifier": Part(river.multioutput.PerOutputClassifier, ("tags",)),
    "a bagged pipeline": Part(
        lambda m: river.ensemble.BaggingClassifier(before(river.preprocessing.MaxAbsScaler())(m), 3, seed=1),
        NUMBERS,
    ),
    "one of each class, boosted": Part(
        lambda m: river.multiclass.OneVsRestClassifier(river.ensemble.AdaBoostClassifier(m, 3, seed=1)),
        NUMBERS,
    ),
    "a sampled, retrained pipeline": Part(
        lambda m: river.drift.DriftRetrainingClassifier(
            river.imblearn.HardSamplingClassifier(
                before(river.preprocessing.OneHotEncoder())(m), 10, 0.3, seed=1
            )
        ),
        ("categories", "numbers"),
    ),
}
PARTS = TRANSFORMERS | WRAPPERS


class Combination(NamedTuple):
    """A part of river around an estimator, over a stream."""

    part: str
    stream: str
    model: str


class Trial(NamedTuple):
    """Why a stream could not be scored and learned, empty if it could; and the scores until then."""

    failure: str
    scores: list[Any]


def combinations() -> list[Combination]:
    """Return all combinations, in a fixed order."""
    return [Combination(p, s, m) for p, part in PARTS.items() for s in part.streams for m in MODELS]


def trial(wrap: Wrap, make: Make, pairs: Pairs) -> Trial:
    """Score, then learn, every message."""
    scores: list[Any] = []
    try:
        model = wrap(make())
        for x, y in pairs:
            scores.append(_score(model, x))
            for share in _shares(scores[-1]):
                if not (math.isfinite(share) and -1e-9 <= share <= 1 + 1e-9):
                    return Trial(f"a share of {share}", scores)
            model.learn_one(x, y)
    except Exception as error:  # noqa: BLE001 - any error is a finding
        return Trial(f"{type(error).__name__}: {error}", scores)
    return Trial("", scores)


def _score(model: Any, x: Any) -> Any:  # noqa: ANN401
    """Return the posterior if the model has one, else the label."""
    label = model.predict_one(x)
    try:
        return model.predict_proba_one(x)
    except NotImplementedError:
        return label


def _shares(score: Any) -> list[float]:  # noqa: ANN401
    """Return the numbers of a score; an active learner gives a pair, a model of several labels one each."""
    score = score[0] if isinstance(score, tuple) else score
    if not isinstance(score, dict):
        return []
    return [n for value in score.values() for n in (value.values() if isinstance(value, dict) else [value])]


def both(combination: Combination) -> tuple[Trial, Trial]:
    """Try a combination with our estimator and with the peer."""
    wrap, pairs = PARTS[combination.part].wrap, stream(combination.stream)
    ours, theirs = MODELS[combination.model]
    return trial(wrap, ours, pairs), trial(wrap, theirs, pairs)


def kind(ours: Trial, theirs: Trial) -> str:
    """Return which of the two work."""
    if ours.failure:
        return "fails in river's own too" if theirs.failure else "fails with ours only"
    return "works, and fails in river's own" if theirs.failure else "works in both"


def main() -> None:
    """Try all combinations and print the counts, and each that fails with ours only."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for combination in combinations():
        ours, theirs = both(combination)
        found = kind(ours, theirs)
        counts[found] += 1
        if found == "fails with ours only":
            print(*combination, ours.failure, sep=" | ")
    print(f"{sum(counts.values())} combinations:")
    for found, n in counts.most_common():
        print(f"{n:6} {found}")


if __name__ == "__main__":
    main()
