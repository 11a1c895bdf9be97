"""Frames in, frames out: pandas, polars and pyarrow through narwhals, or plain sequences of mappings.

A null or NaN cell is a name that the row lacks: a frame cannot express it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import narwhals.stable.v2 as nw
import numpy as np

from streamnb.base import Label
from streamnb.naive_bayes.features.values import is_missing

Frame = nw.DataFrame[Any]
Row = Mapping[str, object] | str
"""A message: a mapping of field names to values; estimators of words also take a text."""


def rows_of(messages: object, *, zeros: bool) -> tuple[list[Row], Frame | None]:
    """Return the messages of a batch as mappings or texts, and the frame whose kind the result shall have.

    Parameters
    ----------
    messages : a frame, a series of texts, or an iterable of mappings or texts
    zeros : bool
        Whether a 0 in a sparse frame is a value; otherwise it is a missing name.

    Returns
    -------
    (list, narwhals DataFrame or None)
        ``None`` if no frame was given. The frame of a series has the series as its only column.

    Raises
    ------
    ValueError
        `messages` is none of these.
    """
    native = nw.from_native(_chunked(messages), eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return [cast("Row", value) for value in _values(native)], native.to_frame()
    if isinstance(native, nw.DataFrame):
        is_sparse = hasattr(messages, "sparse")
        return _sparse_rows(messages, zeros=zeros) if is_sparse else _dense_rows(native), native
    if isinstance(messages, Mapping | str) or not isinstance(messages, Iterable):
        raise ValueError(f"a batch must be a frame or a sequence of messages, not {type(messages).__name__}")
    return list(messages), None


def _dense_rows(frame: Frame) -> list[Row]:
    rows: list[dict[str, object]] = [{} for _ in range(len(frame))]
    for name, column in zip(frame.columns, frame.iter_columns(), strict=True):  # a name may be a number
        for row, value in zip(rows, _values(cast("nw.Series[Any]", column)), strict=True):
            if not is_missing(value):
                row[name] = value
    return [*rows]


def _sparse_rows(frame: Any, *, zeros: bool) -> list[Row]:  # noqa: ANN401 - pandas' own, if it is installed
    """Return the rows of a sparse pandas frame, reading only the cells that it stores and its other fills."""
    rows: list[dict[str, object]] = [{} for _ in range(len(frame))]
    for name, column in frame.items():
        cells = column.array
        fill = cells.fill_value
        if not is_missing(fill) and (zeros or fill):
            fill = fill.item() if isinstance(fill, np.generic) else fill
            for row in rows:
                row[name] = fill
        stored = cells.sp_index.to_int_index().indices
        for i, value in zip(stored.tolist(), cells.sp_values.tolist(), strict=True):
            if is_missing(value) or not (zeros or value):
                rows[i].pop(name, None)
            else:
                rows[i][name] = value
    return [*rows]


def column_of(given: object) -> list[Any]:
    """Return a column of labels, weights or times as a list; a null is ``None``."""
    native = nw.from_native(_chunked(given), series_only=True, pass_through=True)
    return _values(native) if isinstance(native, nw.Series) else list(cast("Iterable[Any]", given))


def labels_of(given: object) -> list[Any]:
    """Return a column of labels as a list; a missing label is ``None``, and 1.0 is 1.

    Columns of numbers with gaps, and those of numpy's default type, hold integers as floats.

    Raises
    ------
    ValueError
        A label is a number with a fraction.
    """
    labels = column_of(given)
    for i, label in enumerate(labels):
        if is_missing(label):
            labels[i] = None
        elif isinstance(label, float | np.floating):
            if not label.is_integer():
                raise ValueError(
                    f"{label} cannot be a label; labels are text, integers or truth values, "
                    "and a float only if it is an integer"
                )
            labels[i] = int(label)
    return labels


def _chunked(given: object) -> Any:  # noqa: ANN401 - whatever was given
    """Return an array of pyarrow as a chunked one, which narwhals takes for a series; others as they are."""
    arrow = nw.dependencies.get_pyarrow()
    return arrow.chunked_array([given]) if arrow is not None and isinstance(given, arrow.Array) else given


def _values(series: nw.Series[Any]) -> list[object]:
    """Return a column as Python values; a null of any kind of frame is ``None``."""
    nulls = series.is_null().to_list()
    return [None if null else value for value, null in zip(series.to_list(), nulls, strict=True)]


def frame_like(columns: Mapping[Label, Sequence[float]], like: Frame) -> object:
    """Return columns of numbers as a frame of the kind, and with the index, of `like`.

    Columns are named by their labels, or by the labels' text in frames that only take text.
    """
    if like.implementation.is_pandas_like():
        native = like.to_native()
        empty = native.iloc[:, :0].copy()
        for label, values in columns.items():
            empty[label] = values
        return empty
    if not columns:
        return like.select().to_native()
    named = {str(label): values for label, values in columns.items()}
    return nw.from_dict(named, backend=nw.get_native_namespace(like)).to_native()


def series_like(labels: Sequence[Label | None], like: Frame) -> object:
    """Return labels as a series of the kind, and with the index, of `like`."""
    native = nw.new_series("", labels, backend=nw.get_native_namespace(like)).to_native()
    if like.implementation.is_pandas_like():
        native.index = like.to_native().index
        native.name = None
    return native
