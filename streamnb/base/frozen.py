"""`FrozenState`, its named arrays (sections), and the checks on sections that were read from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streamnb.base.batch import Floats
from streamnb.errors import SnapshotError

T = TypeVar("T", bound=np.generic)

Section = NDArray[np.generic]
Sections = Mapping[str, Section]

COUNTED_MAX = 1e200  # far above 1e45: 2^53 messages of the largest weight, 64 half-lives past the landmark
WEIGHTS = 1e-60, 1e60  # of a class or a number, with room beyond what weights, half-lives and rounding give
HINT = "Use another snapshot; this file does not hold what streamnb wrote."


@dataclass(frozen=True, slots=True)
class FrozenState:
    """A model's state at one moment; later learning does not change it.

    The learning thread only copies the arrays. The digest costs far more, so it is computed on demand, in the
    thread that calls `digest`.

    Parameters
    ----------
    values : dict
        The part of the state that is stored as JSON.
    sections : dict of str to ndarray
        The part of the state that is stored as arrays.
    digest : callable
        Returns the digest of these values and sections, with keys ``order_free`` and ``all``.
    """

    values: dict[str, object]
    sections: dict[str, Section]
    digest: Callable[[], dict[str, str]]


def section(sections: Sections, name: str, dtype: type[T]) -> NDArray[T]:
    """Return the section with this name and this type.

    Raises
    ------
    SnapshotError
        The section is missing or has another type.
    """
    array = sections.get(name)
    if array is None or array.dtype != np.dtype(dtype):
        raise SnapshotError(f"Section `{name}` is missing or not {np.dtype(dtype).name}.", HINT)
    return array.astype(dtype, copy=False)


def floats(sections: Sections, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return a section of finite numbers with this shape (``None`` allows any number of rows).

    Raises
    ------
    SnapshotError
        The section is missing, has another type or shape, or holds a number that is not finite.
    """
    array = section(sections, name, np.float64)
    rows, *columns = shape
    if array.shape[1:] != tuple(columns) or array.ndim == 0 or rows not in {None, len(array)}:
        raise SnapshotError(f"Section `{name}` has the shape {array.shape}, not {shape}.", HINT)
    if not bool(np.isfinite(array).all()):
        raise SnapshotError(f"Section `{name}` holds an infinite or NaN number.", HINT)
    return array


def counted(sections: Sections, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return a section of sums of weights: `floats` between 0 and `COUNTED_MAX`.

    The upper bound keeps sums of such numbers from overflowing.

    Raises
    ------
    SnapshotError
        As `floats`, or a number is out of bounds.
    """
    array = floats(sections, name, shape)
    if bool((array < 0.0).any()) or bool((array > COUNTED_MAX).any()):
        raise SnapshotError(f"Section `{name}` holds a negative or too large count.", HINT)
    return array


def check_weights(name: str, weights: Floats) -> None:
    """Check that summed weights are 0 or within `WEIGHTS`, so that formulas do not overflow.

    Raises
    ------
    SnapshotError
        A weight of the section `name` is out of bounds.
    """
    least, most = WEIGHTS
    if not bool(((weights == 0.0) | ((weights >= least) & (weights <= most))).all()):
        raise SnapshotError(f"Section `{name}` holds a weight that is out of bounds.", HINT)


def check_magnitude(name: str, array: Floats, most: float) -> None:
    """Check that no number of the section `name` is beyond `most`, above or below 0.

    Raises
    ------
    SnapshotError
        A number is.
    """
    if not bool((np.abs(array) <= most).all()):
        raise SnapshotError(f"Section `{name}` holds a number that is too large to come from messages.", HINT)


def check_text(blob: NDArray[np.uint8], ends: NDArray[np.uint64]) -> None:
    """Check that texts stored end to end in `blob` are UTF-8 and that no boundary splits a character.

    Raises
    ------
    SnapshotError
        A text is not UTF-8.
    """
    try:
        blob.tobytes().decode()
    except UnicodeDecodeError as error:
        raise SnapshotError("A token of the count store is not UTF-8.", HINT) from error
    inside = ends[ends < len(blob)]
    if bool(((blob[inside] & 0xC0) == 0x80).any()):
        raise SnapshotError("A token of the count store is not UTF-8.", HINT)
