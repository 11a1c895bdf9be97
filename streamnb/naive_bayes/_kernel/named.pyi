from collections.abc import Sequence

from streamnb.naive_bayes.model.view import View

class BlockReader:
    def __init__(self, view: View, views: Sequence[View], group: int, store: int) -> None: ...
