"""A model in one file, and back: the same file as an engine's snapshots, without offsets.

The file describes the class and its parameters as plain settings. Reading it runs no code that it names: the
class is one of those listed here, and parameters are checked against the types of its constructor.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from streamnb import __version__
from streamnb.base import Snapshot, differences
from streamnb.errors import SnapshotError
from streamnb.naive_bayes._kernel import memory
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model import plain
from streamnb.storage import read_snapshot, write_snapshot

ESTIMATOR = "estimator"
"""The table of a snapshot's settings that names the class that was saved, with its parameters."""


def save(model: NaiveBayes, path: Path | str, *, overwrite: bool) -> int:
    """Write a model to a file and return its size in bytes; see `NaiveBayes.save`."""
    if type(model).__name__ not in _classes() or _classes()[type(model).__name__] is not type(model):
        raise ValueError(
            f"a {type(model).__name__} cannot be saved: `load` knows only the classes of streamnb; "
            "store what `freeze` returns"
        )
    settings = plain.described(model.state)
    settings[ESTIMATOR] = {"class": type(model).__name__, "parameters": _parameters(model)}
    frozen = model.freeze()
    snapshot = Snapshot(
        values=frozen.values,
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics={"model": model.state_settings()},
        reading=model.reading_settings(),
        settings=settings,
        written_ms=time.time_ns() // 1_000_000,
        streamnb=__version__,
    )
    return write_snapshot(Path(path), snapshot, overwrite=overwrite)


def load(path: Path | str) -> NaiveBayes:
    """Return the model in a file that `NaiveBayes.save`, `streamnb learn` or an engine has written.

    Parameters
    ----------
    path : Path or str
        A file; of an engine, one of the snapshots in its directory. Its offsets are left out.

    Returns
    -------
    NaiveBayes
        An instance of the class that was saved, with its parameters; of an engine's snapshot, the model that
        its settings describe. It gives the same posteriors to the bit and learns on.

    Raises
    ------
    SnapshotError
        The file is damaged, or was written under settings that this version does not know.
    StorageError
        The file cannot be read.

    Examples
    --------
    >>> import streamnb, tempfile
    >>> model = streamnb.NaiveBayes()
    >>> model.learn_one({"text": "win money"}, "spam")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = model.save(f"{folder}/model.snb")
    ...     again = streamnb.load(f"{folder}/model.snb")
    >>> again.predict_one({"text": "money"})
    'spam'
    """
    snapshot = read_snapshot(Path(path), memory)
    try:
        model = _built(snapshot.settings)
    except ValueError as error:
        raise SnapshotError(
            f"The settings in {path} do not describe a model: {error}.",
            "Read the file with the version of streamnb that wrote it.",
        ) from error
    changes = differences({"model": snapshot.statistics.get("model")}, {"model": model.state_settings()})
    if changes:
        raise SnapshotError(
            f"{path} was made with other settings: {'; '.join(changes)}.",
            "Its counts have another meaning here. Read the file with the version of streamnb that wrote it.",
        )
    model.restore(snapshot.values, snapshot.sections)
    return model


def _built(settings: Mapping[str, Any]) -> NaiveBayes:
    """Return the model that the settings of a snapshot describe; it has learned nothing."""
    saved = settings.get(ESTIMATOR)
    if saved is None:
        return NaiveBayes(**plain.parameters(plain.typed(settings)))
    if not isinstance(saved, dict) or not isinstance(saved.get("parameters"), dict):
        raise ValueError(f"the table `{ESTIMATOR}` lacks its class or its parameters")
    made = _classes().get(str(saved.get("class")))
    if made is None:
        raise ValueError(f"{saved.get('class')!r} is not a class of streamnb")
    hints = get_type_hints(made.__init__)
    known = inspect.signature(made).parameters
    given = {}
    for name, value in saved["parameters"].items():
        if name not in known:
            raise ValueError(f"{made.__name__} has no parameter `{name}`")
        try:
            given[name] = msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            raise ValueError(f"`{name}`: {error}") from error
    return made(**given)


def _parameters(model: NaiveBayes) -> dict[str, object]:
    """Return the parameters that differ from their defaults, as plain settings."""
    found = {}
    for name, parameter in inspect.signature(type(model)).parameters.items():
        value = getattr(model, name)
        if name == "classes" and value is not None:
            value = model.state.declared  # Python's own labels, whatever array they came from
        if value is not parameter.default and value != parameter.default:
            found[name] = plain.plain(value)
    return found


@cache
def _classes() -> dict[str, type[NaiveBayes]]:
    """Return the classes of this package that can be saved, by name."""
    from streamnb.naive_bayes import estimators  # which exports them, and this module too

    exported = (getattr(estimators, name) for name in estimators.__all__ if name.endswith("NB"))
    classes = [NaiveBayes, estimators.GaussianDiscriminant, *exported]
    return {each.__name__: each for each in classes}
