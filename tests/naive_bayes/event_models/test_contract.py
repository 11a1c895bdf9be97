"""A user's own event model: a Poisson, from the formula to the engine.

The lectures invite the reader to choose the distribution that fits. Here `x` counts something (visits per
day, words per line), and a class draws it from a Poisson: ``P(x | c) = lambda_c^x exp(-lambda_c) / x!``. The
number of messages and the mean are sufficient statistics, and `NumberBlock` has both, so the event model is
ten lines of formula.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import orjson
import pytest

from streamnb.config.engines import assemble
from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.settings import EngineSettings, SnapshotSettings
from streamnb.evaluation import LiveEvaluation
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.features.readers import Number, Numbers, Words
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.memory import MemoryClock, MemoryLog, MemorySink, MemorySource
from streamnb.wire.message import Decoder, MessageFields
from streamnb.wire.score import Output


class Poisson(msgspec.Struct, frozen=True):
    """Counts drawn from a Poisson per class, its mean steadied by one pseudo-message of the pooled mean."""

    pseudo_messages: float = 1.0

    def statistic(self) -> NumberBlock:
        """Return empty counts and means, by name."""
        return NumberBlock()

    def rate(self, statistic: NumberBlock, key: str, c: int) -> float:
        """Return lambda_c."""
        moments = statistic.numbers[key]
        pooled = math.fsum(n * mean for n, mean in zip(moments.n, moments.mean, strict=True)) / sum(moments.n)
        return (moments.n[c] * moments.mean[c] + self.pseudo_messages * pooled) / (
            moments.n[c] + self.pseudo_messages
        )

    def parts(
        self, features: Mapping[str, float], statistic: NumberBlock, active: Sequence[int]
    ) -> dict[str, list[float]]:
        """Return ``x log lambda_c - lambda_c``; x! is the same for every class."""
        parts = {}
        for key, x in features.items():
            if key in statistic.numbers:
                rates = [self.rate(statistic, key, c) for c in active]
                if min(rates) > 0:
                    parts[key] = [x * math.log(rate) - rate for rate in rates]
        return parts

    def draw(self, statistic: NumberBlock, class_index: int, random: np.random.Generator) -> dict[str, float]:
        """Return the counts of one message."""
        return {
            key: float(random.poisson(self.rate(statistic, key, class_index))) for key in statistic.numbers
        }


VISITS = [View("visits", Numbers(fields=("visits",)), Poisson())]
STREAM = [({"visits": [2, 9][i % 2] + (i * 7) % 3}, ["calm", "busy"][i % 2]) for i in range(60)]


def _learned() -> NaiveBayes:
    model = NaiveBayes(VISITS)
    for x, y in STREAM:
        model.learn_one(x, y)
    return model


def test_the_posterior_is_the_formula() -> None:
    """A Poisson feature leads to the form of logistic regression: log odds that are linear in x."""
    model = _learned()
    rates = {
        y: (sum(x["visits"] for x, label in STREAM if label == y) + sum(x["visits"] for x, _ in STREAM) / 60)
        / 31
        for y in ("calm", "busy")
    }
    for visits in (0, 3, 6, 12):
        expected = visits * math.log(rates["busy"] / rates["calm"]) - (rates["busy"] - rates["calm"])
        assert model.log_odds_one({"visits": visits})["busy"] == pytest.approx(expected, rel=1e-12)


def test_it_explains_unlearns_merges_and_is_restored() -> None:
    """An own event model supports all that the built-in ones do."""
    model = _learned()
    explanation = model.explain_one({"visits": 11})
    assert explanation is not None
    assert explanation.classes == ("busy", "calm")
    assert [(part.view, part.token) for part in explanation.tokens] == [("visits", "visits")]
    restored = NaiveBayes(VISITS)
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    assert restored.digest() == model.digest()
    restored.unlearn_one(*STREAM[0])
    restored.learn_one(*STREAM[0])
    assert restored.predict_proba_one({"visits": 4}) == pytest.approx(model.predict_proba_one({"visits": 4}))
    restored.merge(model)
    assert restored.state.class_counts == [60.0, 60.0]
    assert {y for _, y in model.sample(50)} == {"calm", "busy"}


def test_beside_words_it_enters_the_calibrated_head() -> None:
    """It is one feature of the head, with a weight of its own."""
    model = NaiveBayes([View("words", Words()), *VISITS])
    for x, y in STREAM:
        model.learn_one({"text": f"news of a {'quiet' if y == 'calm' else 'loud'} day", **x}, y)
    assert model.state.head is not None
    assert model.predict_one({"text": "", "visits": 11}) == "busy"


def test_a_number_alone_is_a_block_of_one_name() -> None:
    """`Number` is shorthand, so an own event model reads it too."""
    assert View("visits", Number("visits"), Poisson()) == View(
        "visits", Numbers(fields=("visits",)), Poisson()
    )


def test_another_statistic_is_another_model() -> None:
    """The error names the event model, which is part of the fingerprint."""
    gaussian = NaiveBayes([View("visits", Numbers(fields=("visits",)))])
    with pytest.raises(ValueError, match="Poisson"):
        gaussian.merge(_learned())


def test_it_runs_in_the_engine_and_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    """The engine is assembled in code, because a settings file can name only built-in event models."""
    log, scores, aside = MemoryLog(1), MemoryLog(1), MemoryLog(1)
    clock = MemoryClock(wall_ms=1_000)

    def run(stream: list[tuple[dict[str, int], str]]) -> NaiveBayes:
        for x, y in stream:
            log.append(orjson.dumps({**x, "label": y}))
        model = NaiveBayes(VISITS)
        engine = assemble(
            model=Model("visits", model, Decoder(MessageFields(text=(), number=("visits",)))),
            source=MemorySource(log),
            sink=MemorySink(scores),
            store=SnapshotDirectory(tmp_path / "snapshots", keep=3),
            dead_letters=DeadLetters(MemorySink(aside), clock, DeadLetterLimits()),
            settings=EngineSettings(start="earliest"),
            snapshots=SnapshotSettings(),
            output=Output(),
            clock=clock,
            metrics=Metrics(),
            evaluation=LiveEvaluation(),
            until_end=True,
        )
        try:
            engine.run()
        finally:
            engine.close()
        return model

    run(STREAM[:25])
    resumed = run(STREAM[25:])
    assert resumed.digest() == _learned().digest()
    last = orjson.loads(scores.records(0)[-1].value or b"")
    assert last["prediction"] == STREAM[-1][1]
    assert len(scores.records(0)) == len(STREAM)
