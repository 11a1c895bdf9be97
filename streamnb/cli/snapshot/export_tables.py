"""Write a snapshot's counts or weights as a table for other tools: CSV, or Parquet with pyarrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from streamnb.base import Label, Snapshot
from streamnb.config import restore_model
from streamnb.errors import SettingsError
from streamnb.naive_bayes import NaiveBayes
from streamnb.storage import files

Row = tuple[str, str, str, float]

COUNTS = ("view", "token", "class", "count")
WEIGHTS = ("view", "feature", "class", "weight")
_ROWS = 100_000  # per write, so that a large table is never in memory as a whole


def counts(model: NaiveBayes) -> Iterator[Row]:
    """Yield view, token, class and count of every count that is not 0.

    Examples
    --------
    >>> model = NaiveBayes()
    >>> model.learn_one({"text": "win a prize"}, "spam")
    >>> next(counts(model))
    ('words', 'win', 'spam', 1.0)
    """
    labels = [str(label) for label in model.classes_]
    for view in model.state.counts:
        for token, row in model.state.counts[view].rows.items():
            for label, n in zip(labels, row, strict=True):
                if n:
                    yield view, token, label, n


def weights(snapshot: Snapshot, classes: tuple[Label, Label] | None = None) -> Iterator[Row]:
    """Yield view, feature, class and weight of the linear boundary between two classes, intercept first.

    The row of the intercept has neither view nor feature. The calibrated head has no linear boundary; for it,
    the weights of the raw posterior are returned, which uses the same counts with the product head and the
    classes' own shares as prior.

    Raises
    ------
    SettingsError
        The model has no linear boundary, or there are more than two classes and `classes` is not given.
    """
    settings, restored = restore_model(snapshot)
    model = NaiveBayes(
        settings.views,
        prior=settings.prior,
        head="product",
        classes=settings.model.classes,
        classes_max=settings.model.classes_max,
        tokenizer=settings.tokens,
    )
    frozen = restored.freeze()
    model.restore(frozen.values, frozen.sections)
    try:
        intercept, found = model.linear_weights(classes)
    except ValueError as error:
        several = classes is None and len(model.classes_) > 2
        hint = "Name two classes: `--classes spam,ham`." if several else "Export the counts instead."
        raise SettingsError(f"There are no weights to export: {error}.", hint) from error
    positive = str(classes[0] if classes else min(model.state.classes[c] for c in model.state.active()))
    yield "", "", positive, intercept
    for (view, feature), weight in found.items():
        yield view, feature, positive, weight


def check_format(path: Path) -> None:
    """Check that a table can be written in the format of a file's name.

    Raises
    ------
    SettingsError
        The name ends in neither ``.csv`` nor ``.parquet``, or pyarrow is not installed.
    """
    if path.suffix not in {".csv", ".parquet"}:
        raise SettingsError(
            f"The format of {path} is not known.", "Choose a name that ends in .csv or .parquet."
        )
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise SettingsError(
            "Parquet needs the package pyarrow, which is not installed.",
            "Install it: pip install 'streamnb[export]', or export to a .csv file.",
        )


def write(path: Path, names: tuple[str, ...], rows: Iterable[Row]) -> int:
    """Write a table to a file, in the format of its file name extension, and return the file's size in bytes.

    Raises
    ------
    SettingsError
        The name ends in neither ``.csv`` nor ``.parquet``, or pyarrow is not installed.
    StorageError
        The file could not be written; no part of it is left.
    """
    check_format(path)
    table = _csv(names, rows) if path.suffix == ".csv" else _parquet(names, rows)
    return files.write_new(path, table)


def _csv(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[bytes]:
    rest: Iterator[tuple[object, ...]] = iter(rows)
    some: list[tuple[object, ...]] = [names]
    while some:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(some)
        yield text.getvalue().encode()
        some = list(islice(rest, _ROWS))


def _parquet(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    few = pa.dictionary(pa.int32(), pa.string())
    types = [few, pa.string(), few, pa.float64()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    rest, out = iter(rows), io.BytesIO()
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while some := list(islice(rest, _ROWS)):
            columns = [
                pa.array(some_of, kind) for some_of, kind in zip(zip(*some, strict=True), types, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))
    yield out.getvalue()
