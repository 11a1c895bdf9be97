"""All classes together take a bounded part of a score, whatever the batches are."""

from __future__ import annotations

import pytest

from streamnb import TEXT_ONLY, NaiveBayes
from streamnb.base.batch import Batch, Scores
from streamnb.base.record import Partition
from streamnb.engine.class_budget import ClassBudget
from streamnb.engine.guard import Guard, GuardSettings
from streamnb.engine.settings import EngineSettings
from tests.engine.test_engine import message, rig


def test_F8_many_long_labels_are_refused_before_scores_grow_too_large() -> None:
    """With a high `classes_max` too; each is a dead letter, and known labels are still learned."""
    labels = [f"{i:04}" + "x" * 250 for i in range(900)]
    it = rig([*(message(i, "win", label) for i, label in enumerate(labels)), message(900, "win", labels[0])])
    summary = it.run(
        classifier=NaiveBayes(TEXT_ONLY, classes_max=10_000),
        settings=EngineSettings(start="earliest", batch_records_max=500),
    )
    assert max(len(one.value or b"") for one in it.scores.records(0)) < 800_000
    reasons = {dict(one.headers)["streamnb.reason"] for one in it.aside.records(0)}
    assert reasons == {b"class_limit"}
    assert it.metrics.registry.get_sample_value("streamnb_cut_scores_total") == 0
    assert len(it.model.classes_) + summary.dead_letters == 900
    assert summary.learned == len(it.model.classes_) + 1


@pytest.mark.parametrize("size", [1, 3, 7, 60])
@pytest.mark.parametrize("quota", [1, 2])
def test_what_is_refused_does_not_depend_on_the_batches(size: int, quota: int) -> None:
    """Records that are read again after a crash come in other batches; a label that the guard withheld takes
    no room.
    """
    labels = [*"abacdcefcgahia"] * 4
    labels[3] = labels[17] = "c" * 40
    senders = ["x", "x", "y", "y", "x", "z", "z", "x", "u", "u", "v", "w", "w", "x"] * 4
    texts = ["win"] * len(labels)

    def run(size: int) -> tuple[str, list[int]]:
        model, budget = NaiveBayes(), ClassBudget(500)
        guard = Guard(GuardSettings(source="from", quota=quota))
        flags: list[int] = []
        for begin in range(0, len(labels), size):
            rows = slice(begin, begin + size)
            batch = Batch({"text": texts[rows], "from": senders[rows]}, labels[rows])

            def step(part: Batch, of: slice, first: int = begin) -> Scores:
                return guard.step(model, Partition("t", 0), range(first, first + size)[of], part)

            flags += budget.step(model, batch, step).flags.tolist()
        return model.digest()["all"], flags

    assert run(size) == run(5)
    assert 4 in run(5)[1]


def test_a_restored_model_is_within_the_same_budget() -> None:
    """An engine that resumes refuses what the one before would have refused."""
    model, budget = NaiveBayes(), ClassBudget(400)
    for label in "abc":
        model.learn_one({"text": "win"}, label)
    batch = Batch({"text": ["win"] * 2}, ["d", "a"])
    scores = budget.step(model, batch, lambda part, _: model.step(part))
    assert scores.flags.tolist() == [4, 0]
