"""Per field of a block of categories: how often a class had it, and how many values it has.

It is made from the rows of the count store, whose tokens name their field, and kept in step with them, so a
snapshot does not carry it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.naive_bayes.features.readers import field_of


class FieldTotal:
    """Sums over the values of one field.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    totals : list of float
        Weight of the messages that had the field, per class.
    states : int
        How many values were seen: its k.
    """

    __slots__ = ("states", "totals")

    def __init__(self, n_classes: int = 0) -> None:
        self.totals = [0.0] * n_classes
        self.states = 0

    def add_class(self) -> None:
        """Append a class that never had the field."""
        self.totals.append(0.0)

    def add(self, class_index: int, n: float) -> None:
        """Count a value for a class."""
        self.totals[class_index] += n

    def remove(self, class_index: int, n: float) -> None:
        """Take a value back."""
        self.totals[class_index] = max(0.0, self.totals[class_index] - n)


class FieldTotals:
    """Sums over the values of each field.

    Parameters
    ----------
    n_classes : int
    kind : type of FieldTotal
        The plain sums of a field, or their compiled twin.

    Attributes
    ----------
    fields : dict of str to FieldTotal
        None that nothing is known of.

    Examples
    --------
    >>> fields = FieldTotals(n_classes=2)
    >>> fields.add({}, {'colour="red"': 1.0}, class_index=1)
    >>> fields.fields["colour"].totals, fields.fields["colour"].states
    ([0.0, 1.0], 1)
    """

    __slots__ = ("_kind", "_n_classes", "fields")

    def __init__(self, n_classes: int = 0, kind: type[FieldTotal] = FieldTotal) -> None:
        self._n_classes = n_classes
        self._kind = kind
        self.fields: dict[str, FieldTotal] = {}

    def add_class(self) -> None:
        """Append a class that had no field."""
        self._n_classes += 1
        for field in self.fields.values():
            field.add_class()

    def add(
        self,
        rows: Mapping[str, Sequence[float]],
        tokens: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Follow a message's values, before the rows do."""
        for token, f in tokens.items():
            field = self._field_of(token)
            field.add(class_index, f * weight)
            if token not in rows:
                field.states += 1

    def remove(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        _weight: float = 1.0,
    ) -> None:
        """Take of each value's count an amount back, before the rows do."""
        for token, amount in amounts.items():
            name, row = field_of(token), rows[token]
            self.fields[name].remove(class_index, amount)
            if sum(row) - row[class_index] == 0 and row[class_index] <= amount:
                self.fields[name].states -= 1
                if not self.fields[name].states:
                    del self.fields[name]

    def rebuild(self, rows: Mapping[str, Sequence[float]], messages: Sequence[float]) -> None:
        """Begin again from the rows, as after a snapshot was read or rare values were let go."""
        self._n_classes, self.fields = len(messages), {}
        for token, row in rows.items():
            field = self._field_of(token)
            field.states += 1
            for c, count in enumerate(row):
                field.add(c, count)

    def _field_of(self, token: str) -> FieldTotal:
        name = field_of(token)
        field = self.fields.get(name)
        if field is None:
            field = self.fields[name] = self._kind(self._n_classes)
        return field
