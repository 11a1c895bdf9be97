"""Frames in, frames out: pandas, polars and pyarrow through narwhals, or plain sequences of mappings.

A cell that is null or NaN is a name the row lacks, which is the only way a frame has to say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import narwhals.stable.v2 as nw

from streamnb.base import Label
from streamnb.naive_bayes.features.values import is_missing

Frame = nw.DataFrame[Any]
Row = Mapping[str, object] | str


def rows_of(messages: object, *, zeros: bool) -> tuple[list[Row], Frame | None]:
    """The messages of a batch as mappings or texts, and the frame whose kind the answer is to have.

    Parameters
    ----------
    messages : a frame, a series of texts, or an iterable of mappings or texts
    zeros : bool
        Whether a 0 is a value like any other, or a sparse frame may leave it out.

    Returns
    -------
    (list, narwhals DataFrame or None)
        ``None`` where no frame was given. The frame of a series has that series for its only column.

    Raises
    ------
    ValueError
        It is none of these.
    """
    native = nw.from_native(cast("Any", messages), eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return [cast("Row", value) for value in _values(native)], native.to_frame()
    if isinstance(native, nw.DataFrame):
        if not hasattr(messages, "sparse"):
            return _dense_rows(native), native
        if zeros:
            return _dense_rows(nw.from_native(messages.sparse.to_dense(), eager_only=True)), native
        return _sparse_rows(messages), native
    if isinstance(messages, Mapping | str) or not isinstance(messages, Iterable):
        raise ValueError(f"a batch is a frame or a sequence of messages, not {type(messages).__name__}")
    return list(messages), None


def _dense_rows(frame: Frame) -> list[Row]:
    rows: list[dict[str, object]] = [{} for _ in range(len(frame))]
    for name, column in zip(frame.columns, frame.iter_columns(), strict=True):  # a name may be a number
        for row, value in zip(rows, _values(cast("nw.Series[Any]", column)), strict=True):
            if not is_missing(value):
                row[name] = value
    return [*rows]


def _sparse_rows(frame: Any) -> list[Row]:  # noqa: ANN401 - pandas' own, which need not be installed
    """The cells of a sparse pandas frame that are not 0: a row lacks the others."""
    names = list(frame.columns)
    cells = frame.sparse.to_coo()
    rows: list[dict[str, object]] = [{} for _ in range(cells.shape[0])]
    for i, j, value in zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True):
        if not is_missing(value):
            rows[i][names[j]] = value
    return [*rows]


def labels_of(labels: object) -> list[Label | None]:
    """A column of labels as a list; a null is no label."""
    native = nw.from_native(cast("Any", labels), series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        return cast("list[Label | None]", _values(native))
    return list(cast("Iterable[Label | None]", labels))


def _values(series: nw.Series[Any]) -> list[object]:
    """A column as Python's own values, ``None`` for whatever its kind of frame has for a null."""
    nulls = series.is_null().to_list()
    return [None if null else value for value, null in zip(series.to_list(), nulls, strict=True)]


def frame_like(columns: Mapping[Label, Sequence[float]], like: Frame) -> object:
    """Columns of numbers as a frame of the kind, and with the index, of another.

    Labels name the columns; where only text can, their text does.
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
    """Labels as a series of the kind, and with the index, of a frame."""
    native = nw.new_series("", labels, backend=nw.get_native_namespace(like)).to_native()
    if like.implementation.is_pandas_like():
        native.index = like.to_native().index
        native.name = None
    return native
