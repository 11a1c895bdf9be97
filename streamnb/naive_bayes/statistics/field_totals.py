"""Totals of categorical fields: how often each class had a field, and how many values the field has.

The totals are sums over rows of the count store, whose tokens contain the field's name. `FieldTotals.add`
and `FieldTotals.remove` look up in the rows which values are known, so call them before the rows change.
A snapshot holds the totals too: if weights are not multiples of 1/256, the last bits of a sum depend on the
order of its terms, and a restored model must go on from the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson

from streamnb.base import HINT, Section, Sections, counted, section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.features.field_tokens import field_of
from streamnb.naive_bayes.statistics.view_counts import can_subtract


class FieldTotal:
    """Sums over all values of one field.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    totals : list of float
        Per class, the summed weight of the messages that had the field.
    states : int
        The number of different values seen: k in the categorical formula.
    """

    __slots__ = ("states", "totals")

    def __init__(self, n_classes: int = 0) -> None:
        self.totals = [0.0] * n_classes
        self.states = 0

    def add_class(self) -> None:
        """Append a class that has never had the field."""
        self.totals.append(0.0)

    def add(self, class_index: int, n: float) -> None:
        """Add the weight `n` of one value to a class."""
        self.totals[class_index] += n

    def remove(self, class_index: int, n: float) -> None:
        """Subtract the weight `n` of one value from a class."""
        self.totals[class_index] = max(0.0, self.totals[class_index] - n)


class FieldTotals:
    """Sums over all values of each field.

    Parameters
    ----------
    n_classes : int
    kind : type of FieldTotal
        The plain class or its compiled twin.

    Attributes
    ----------
    fields : dict of str to FieldTotal
        Only fields with at least one value seen.

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
        """Append a class that has had no field."""
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
        """Add a message's values to the totals of their fields.

        Call it before the rows themselves change: a value without a row is a new one.
        """
        for token, f in tokens.items():
            field = self._field_of(token)
            field.add(class_index, f * weight)
            if token not in rows:
                field.states += 1

    def check_removable(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Do nothing: the totals are sums of the rows, whatever is subtracted from both."""

    def remove(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        _weight: float = 1.0,
    ) -> None:
        """Undo `add`: subtract from the field of each value its amount.

        Call it before the rows themselves change: it looks there whether the value is about to disappear.
        """
        sums = self._sums_left(rows, amounts, class_index)
        for token, amount in amounts.items():
            name, row = field_of(token), rows[token]
            field = self.fields[name]
            if name in sums:
                field.remove(class_index, field.totals[class_index])
                field.add(class_index, sums[name])
            else:
                field.remove(class_index, amount)
            elsewhere = any(n > 0 for c, n in enumerate(row) if c != class_index)  # a sum would round
            if not elsewhere and row[class_index] <= amount:
                self.fields[name].states -= 1
                if not self.fields[name].states:
                    del self.fields[name]

    def messages_of(self, class_index: int) -> float:  # noqa: ARG002 - it keeps none
        """Return 0."""
        return 0.0

    def settle(self, class_index: int, messages: float) -> float:  # noqa: ARG002 - it keeps none
        """Return the weight as it is."""
        return messages

    def rebuild(self, rows: Mapping[str, Sequence[float]], messages: Sequence[float]) -> None:
        """Compute the totals from the rows, after they have changed as a whole."""
        self._n_classes, self.fields = len(messages), {}
        for token, row in rows.items():
            field = self._field_of(token)
            field.states += 1
            for c, count in enumerate(row):
                field.add(c, count)

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the totals as arrays, which later learning does not change.

        Returns
        -------
        dict of str to ndarray
            Each key begins with `prefix`. ``_fields`` uint8 (B,), a JSON list; ``_totals`` float64 (K, C),
            one row for each of the K fields.
        """
        names = sorted(self.fields)  # the order of appearance is lost when the totals are computed again
        totals = [self.fields[name].totals for name in names]
        return {
            f"{prefix}_fields": np.frombuffer(orjson.dumps(names), np.uint8),
            f"{prefix}_totals": np.array(totals, np.float64).reshape(len(totals), self._n_classes),
        }

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Replace the totals, after `rebuild`, by those of `freeze`; older snapshots do not hold them.

        Raises
        ------
        SnapshotError
            The arrays are not totals of the fields that the rows name.
        """
        if f"{prefix}_fields" not in sections:
            return
        totals = counted(sections, f"{prefix}_totals", (len(self.fields), n_classes))
        names = section(sections, f"{prefix}_fields", np.uint8).tobytes()
        try:
            fields = {name: self.fields[name] for name in orjson.loads(names)}
        except (orjson.JSONDecodeError, TypeError, KeyError) as error:
            raise _strange(prefix) from error
        if len(fields) != len(self.fields):
            raise _strange(prefix)
        sums = np.array([field.totals for field in fields.values()]).reshape(totals.shape)
        if not np.allclose(sums, totals, rtol=1e-9, atol=1e-9):
            raise SnapshotError(f"Section `{prefix}_totals` does not hold the sums of the counts.", HINT)
        self.fields = {}
        for (name, counted_again), row in zip(fields.items(), totals.tolist(), strict=True):
            field = self.fields[name] = self._kind(n_classes)
            field.states = counted_again.states
            for c, total in enumerate(row):
                field.add(c, total)

    def _sums_left(
        self, rows: Mapping[str, Sequence[float]], amounts: Mapping[str, float], c: int
    ) -> dict[str, float]:
        """Return the total that `remove` leaves to each field from whose total it cannot subtract."""
        sums = {}
        for token, amount in amounts.items():
            name = field_of(token)
            if not can_subtract(self.fields[name].totals[c], amount):
                sums[name] = 0.0
        for token, row in rows.items() if sums else ():
            name = field_of(token)
            if name in sums:
                sums[name] += row[c] - amounts.get(token, 0.0)
        return sums

    def _field_of(self, token: str) -> FieldTotal:
        name = field_of(token)
        field = self.fields.get(name)
        if field is None:
            field = self.fields[name] = self._kind(self._n_classes)
        return field


def _strange(prefix: str) -> SnapshotError:
    return SnapshotError(f"Section `{prefix}_fields` does not name the fields of the counts.", HINT)
