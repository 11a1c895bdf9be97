from collections.abc import Mapping, Sequence

from streamnb.base.batch import Batch, Label, Scores
from streamnb.naive_bayes.model.state import State

class Driver:
    def __init__(self, model: State) -> None: ...
    def step(self, model: State, batch: Batch, score: bool, learn: bool) -> Scores: ...
    def one(
        self,
        model: State,
        fields: Mapping[str, Sequence[object]],
        label: Label | None,
        weight: float,
        at: float | None,
        score: bool,
    ) -> dict[Label, float]: ...
