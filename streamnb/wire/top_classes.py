"""The likeliest classes of each score, where a model has more than a score lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from numpy.typing import NDArray

from streamnb.base import Floats
from streamnb.wire.template import Column, Table

TOP_CLASSES = 20  # a score stays below 4 kB with ten letters a class


@dataclass(frozen=True, slots=True)
class TopClasses:
    """The classes that each row of a table lists: those with the highest posteriors, in the model's order.

    Parameters
    ----------
    columns : ndarray of int64, shape (n, k)
        Each row's classes, in rising order.
    keys : list of list of bytes
        For each of the k places, the name of every row's class as a JSON key with its colon.
    others : ndarray of float64, shape (n,)
        The summed posterior of each row's other classes.
    """

    columns: NDArray[np.int64]
    keys: list[list[bytes]]
    others: Floats

    @classmethod
    def of(cls, names: Sequence[str], posterior: Floats, k: int) -> TopClasses:
        """Return the `k` likeliest of more than `k` classes; of equal ones the smallest names are listed.

        Examples
        --------
        >>> top = TopClasses.of(["c", "b", "a"], np.array([[0.25, 0.25, 0.5]]), 2)
        >>> top.columns.tolist(), top.keys, top.others.tolist()
        ([[1, 2]], [[b'"b":'], [b'"a":']], [0.25])
        """
        # Equal posteriors are chosen by name, as the prediction is, which must be among the listed classes.
        order = np.array(sorted(range(len(names)), key=names.__getitem__))
        by_name = np.take(posterior, order, axis=1)
        least = np.partition(by_name, len(names) - k, axis=1)[:, len(names) - k, None]
        chosen = by_name >= least
        if np.count_nonzero(chosen) > k * len(chosen):  # some row has too many that are equal to the least
            above = by_name > least
            missing = k - above.sum(axis=1, keepdims=True)
            equal = chosen & ~above
            chosen = above | (equal & (equal.cumsum(axis=1) <= missing))
        columns = np.sort(order[np.nonzero(chosen)[1].reshape(-1, k)], axis=1)
        keys = [orjson.dumps(name) + b":" for name in names]
        rest = posterior.copy()
        np.put_along_axis(rest, columns, 0.0, axis=1)
        return cls(
            columns,
            [[keys[c] for c in column] for column in columns.T.tolist()],
            # `sum` adds in an order that depends on the number of rows, and a score must not.
            np.add.accumulate(rest, axis=1)[:, -1],
        )

    def taken(self, table: Floats) -> Floats:
        """Return the values of the listed classes of a table."""
        return np.take_along_axis(table, self.columns, axis=1)

    def with_keys(self, values: Table) -> list[Column]:
        """Return the listed classes' values with a key before each, as columns of a template."""
        cells = values.text.split(b",")
        return [
            column for place, keys in enumerate(self.keys) for column in (keys, cells[place :: values.width])
        ]
