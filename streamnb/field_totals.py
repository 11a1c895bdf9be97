"""Per field of a block of categories: how often a class had it, and how many values it has.

It is made from the rows of the count store, whose tokens name their field, and kept in step with them, so a
snapshot does not carry it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.blocks import field_of


class FieldTotals:
    """Sums over the values of each field.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    totals : dict of str to list of float
        Field to the weight of the messages that had it, per class.
    states : dict of str to int
        Field to how many values were seen: its k.

    Examples
    --------
    >>> fields = FieldTotals(n_classes=2)
    >>> fields.add({}, {'colour="red"': 1.0}, class_index=1)
    >>> fields.totals, fields.states
    ({'colour': [0.0, 1.0]}, {'colour': 1})
    """

    __slots__ = ("_n_classes", "states", "totals")

    def __init__(self, n_classes: int = 0) -> None:
        self._n_classes = n_classes
        self.totals: dict[str, list[float]] = {}
        self.states: dict[str, int] = {}

    def add_class(self) -> None:
        """Append a class that had no field."""
        self._n_classes += 1
        for totals in self.totals.values():
            totals.append(0.0)

    def add(
        self,
        rows: Mapping[str, Sequence[float]],
        tokens: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Follow a message's values, before the rows do."""
        for token, f in tokens.items():
            field = field_of(token)
            totals = self.totals.get(field)
            if totals is None:
                totals = self.totals[field] = [0.0] * self._n_classes
                self.states[field] = 0
            totals[class_index] += f * weight
            if token not in rows:
                self.states[field] += 1

    def remove(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        _weight: float = 1.0,
    ) -> None:
        """Take of each value's count an amount back, before the rows do."""
        for token, amount in amounts.items():
            field = field_of(token)
            totals, row = self.totals[field], rows[token]
            totals[class_index] = max(0.0, totals[class_index] - amount)
            if sum(row) - row[class_index] == 0 and row[class_index] <= amount:
                self.states[field] -= 1
                if not self.states[field]:
                    del self.states[field], self.totals[field]

    def rebuild(self, rows: Mapping[str, Sequence[float]], messages: Sequence[float]) -> None:
        """Begin again from the rows, as after a snapshot was read or rare values were let go."""
        self._n_classes = len(messages)
        self.totals, self.states = {}, {}
        for token, row in rows.items():
            field = field_of(token)
            totals = self.totals.setdefault(field, [0.0] * self._n_classes)
            self.states[field] = self.states.get(field, 0) + 1
            for c, count in enumerate(row):
                totals[c] += count
