from collections.abc import Mapping, Sequence

from streamnb.base import Batch, Label, Scores
from streamnb.naive_bayes._kernel.driven import DrivenModel

class Driver:
    def __init__(self, model: DrivenModel) -> None: ...
    def step(self, model: DrivenModel, batch: Batch, score: bool, learn: bool) -> Scores: ...
    def one(
        self,
        model: DrivenModel,
        fields: Mapping[str, Sequence[object]],
        label: Label | None,
        weight: float,
        at: float | None,
        score: bool,
    ) -> dict[Label, float]: ...
