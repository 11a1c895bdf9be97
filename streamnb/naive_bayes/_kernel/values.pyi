from collections.abc import Sequence

from streamnb.naive_bayes._kernel.driven import DrivenView

class BlockReader:
    def __init__(self, view: DrivenView, views: Sequence[DrivenView], group: int, store: int) -> None: ...
