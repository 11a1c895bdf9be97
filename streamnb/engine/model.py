"""The model as the engine drives it: a classifier, its messages' decoder and its labels' guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamnb.base import Batch, Classifier, FrozenState, Partition, Scores, Snapshot
from streamnb.engine.class_budget import ClassBudget
from streamnb.engine.guard import Guard
from streamnb.wire import Decoder

GUARD = "guard"  # the key of the guard's values in a snapshot, beside the classifier's


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that decides what is learned from a record.

    Parameters
    ----------
    name : str
        Published with every score.
    classifier : Classifier
    decoder : Decoder
    guard : Guard, optional
        Keeps labels from being learned.
    description : mapping
        The settings that rebuild the model, for the snapshot.
    budget : ClassBudget
        Refuses labels that would make scores too large.
    """

    name: str
    classifier: Classifier
    decoder: Decoder
    guard: Guard | None = None
    description: Mapping[str, object] = field(default_factory=dict)
    budget: ClassBudget = field(default_factory=ClassBudget)

    def step(self, partition: Partition, offsets: Sequence[int], batch: Batch) -> Scores:
        """Score each message, then learn it if it has a label and the guard allows it."""
        guard = self.guard

        def step(part: Batch, rows: slice) -> Scores:
            if guard is None:
                return self.classifier.step(part)
            return guard.step(self.classifier, partition, offsets[rows], part)

        return self.budget.step(self.classifier, batch, step)

    def state_settings(self) -> dict[str, object]:
        """Return the settings that the state depends on."""
        return {"message": self.decoder.state_settings(), "model": self.classifier.state_settings()}

    def freeze(self) -> FrozenState:
        """Return the state of classifier and guard, which no later learning changes."""
        frozen = self.classifier.freeze()
        if self.guard is None:
            return frozen
        values, sections = self.guard.freeze()
        return replace(
            frozen, values={**frozen.values, GUARD: values}, sections={**frozen.sections, **sections}
        )

    def restore(self, snapshot: Snapshot, *, with_guard: bool = True) -> None:
        """Restore what `freeze` returned; the guard only where its offsets are the snapshot's.

        Raises
        ------
        SnapshotError
            The snapshot holds no state of this model.
        """
        self.classifier.restore(snapshot.values, snapshot.sections)
        if self.guard is not None and with_guard:
            self.guard.restore(snapshot.values.get(GUARD), snapshot.sections)
