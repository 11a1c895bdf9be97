from collections.abc import Sequence

from streamnb.columns import Batch, Label, Scores
from streamnb.state import State

class Driver:
    def __init__(self, model: State) -> None: ...
    def step(
        self,
        model: State,
        batch: Batch,
        labels: Sequence[Label | None],
        weights: Sequence[float] | None,
        score: bool,
    ) -> Scores: ...
