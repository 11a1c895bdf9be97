"""Sections: a state's raw arrays by name, frozen, and the checks they pass before anything believes them."""

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

COUNTED_MAX = 1e200  # 2^53 messages of the largest weight, 64 half-lives past the landmark, come to 1e45
HINT = "Use another snapshot; this file does not hold what streamnb wrote."


@dataclass(frozen=True, slots=True)
class FrozenState:
    """A model's state at one moment, which no later learning changes.

    Whoever learns pays for the copy; the digest, which costs far more, is computed when it is asked for,
    by whatever thread asks.

    Parameters
    ----------
    values : dict
        What JSON can say.
    sections : dict of str to ndarray
    digest : callable
        Gives the digest of these values and sections, ``order_free`` and ``all``.
    """

    values: dict[str, object]
    sections: dict[str, Section]
    digest: Callable[[], dict[str, str]]


def section(sections: Sections, name: str, dtype: type[T]) -> NDArray[T]:
    """A section by name, of one type.

    Raises
    ------
    SnapshotError
        There is none, or it is of another type.
    """
    array = sections.get(name)
    if array is None or array.dtype != np.dtype(dtype):
        raise SnapshotError(f"Section `{name}` is missing or not {np.dtype(dtype).name}.", HINT)
    return array.astype(dtype, copy=False)


def floats(sections: Sections, name: str, shape: tuple[int | None, int]) -> Floats:
    """A section of finite numbers, of a shape (``None``: any number of rows).

    Raises
    ------
    SnapshotError
        It is not.
    """
    array = section(sections, name, np.float64)
    rows, columns = shape
    if array.ndim != 2 or array.shape[1] != columns or (rows is not None and array.shape[0] != rows):
        raise SnapshotError(f"Section `{name}` is of shape {array.shape}, not {shape}.", HINT)
    if not bool(np.isfinite(array).all()):
        raise SnapshotError(f"Section `{name}` holds a number that no stream can give.", HINT)
    return array


def counted(sections: Sections, name: str, shape: tuple[int | None, int]) -> Floats:
    """`floats` that are sums of weights: not below 0, nor so large that a sum of them overflows.

    Raises
    ------
    SnapshotError
        They are not.
    """
    array = floats(sections, name, shape)
    if bool((array < 0.0).any()) or bool((array > COUNTED_MAX).any()):
        raise SnapshotError(f"Section `{name}` holds a count that no stream can give.", HINT)
    return array


def check_text(blob: NDArray[np.uint8], ends: NDArray[np.uint64]) -> None:
    """Texts end to end: UTF-8 as a whole, and none that begins inside a character.

    Raises
    ------
    SnapshotError
        They are not.
    """
    try:
        blob.tobytes().decode()
    except UnicodeDecodeError as error:
        raise SnapshotError("A token of the count store is not UTF-8.", HINT) from error
    inside = ends[ends < len(blob)]
    if bool(((blob[inside] & 0xC0) == 0x80).any()):
        raise SnapshotError("A token of the count store is not UTF-8.", HINT)
