"""Write a model to one file: the same file as an engine's snapshots, without offsets.

The file describes the class and its parameters as plain settings; `loading` reads them.
"""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import TYPE_CHECKING

from streamnb import __version__
from streamnb.base import Snapshot
from streamnb.errors import PathError
from streamnb.naive_bayes.estimators.parameters import typed_parameters
from streamnb.naive_bayes.model import plain
from streamnb.storage import write_snapshot

if TYPE_CHECKING:
    from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes

ESTIMATOR = "estimator"
"""The table of a snapshot's settings that names the class that was saved, with its parameters."""


def save(model: NaiveBayes, path: Path | str, *, overwrite: bool) -> int:
    """Write a model to a file and return its size in bytes; see `NaiveBayes.save`."""
    if type(model).__module__.rpartition(".")[0] != __package__:
        raise ValueError(
            f"a {type(model).__name__} cannot be saved: `load` knows only the classes of streamnb; "
            "store what `freeze` returns"
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise PathError(f"The folder of {path} does not exist.", "Create it, or choose another path.")
    if not overwrite and path.exists():
        raise PathError(f"{path} exists.", "Pass overwrite=True to replace it, or choose another path.")
    settings = plain.described(model.state)
    given = _parameters(model)
    typed_parameters(type(model), given)  # what `load` would refuse is not written
    settings[ESTIMATOR] = {"class": type(model).__name__, "parameters": given}
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
    return write_snapshot(path, snapshot, overwrite=overwrite)


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
