"""The arrays of a scatter in a snapshot: how they are written, and the checks when they are read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamnb.base import HINT, Floats, Section, Sections, floats, section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.inverse_scatter import InverseScatter
from streamnb.naive_bayes.statistics.moments import check_moments


class ScatterArrays(NamedTuple):
    """The sums of a scatter and their inverses; see `Scatter` for the shapes."""

    names: list[str]
    n: Floats
    mean: Floats
    squares: Floats
    inverses: list[InverseScatter]


def freeze(sums: ScatterArrays, prefix: str) -> dict[str, Section]:
    """Return the sums of a scatter as arrays, which later learning does not change.

    Returns
    -------
    dict of str to ndarray
        Each key begins with `prefix`. ``_names`` uint8 (B,), the UTF-8 of all names end to end;
        ``_name_ends`` uint64 (d,), the end of each name; ``_sums`` float64 (3 C d, d): n, mean, squares;
        ``_inverses`` float64 (k d, d), the k inverses that exist; ``_inverse_facts`` float64 (1 or C, 3):
        whether the inverse exists, its log determinant, its age. (The inverses could be computed from the
        sums, but with other rounding. They are stored so that a restored model gives the same bits as one
        that kept running.)
    """
    d = len(sums.names)
    encoded = [name.encode() for name in sums.names]
    facts = [[float(kept.matrix is not None), kept.log_det, float(kept.age)] for kept in sums.inverses]
    matrices = [kept.matrix for kept in sums.inverses if kept.matrix is not None]
    return {
        f"{prefix}_names": np.frombuffer(b"".join(encoded), np.uint8),
        f"{prefix}_name_ends": np.cumsum([len(e) for e in encoded], dtype=np.uint64),
        f"{prefix}_sums": np.concatenate([sums.n, sums.mean, sums.squares]).reshape(-1, d or 1),
        f"{prefix}_inverses": np.array(matrices, np.float64).reshape(len(matrices) * d, d or 1),
        f"{prefix}_inverse_facts": np.array(facts, np.float64).reshape(len(facts), 3),
    }


def checked(sections: Sections, n_classes: int, prefix: str, *, shared: bool) -> ScatterArrays:
    """Return the sums that a snapshot's arrays hold, after checking shapes, signs, symmetry and names.

    Raises
    ------
    SnapshotError
        The arrays do not hold the sums of that many classes.
    """
    names = _names(sections, prefix)
    d = len(names)
    array = floats(sections, f"{prefix}_sums", (3 * n_classes * d, d or 1))
    n, mean, squares = array.reshape(3, n_classes, d, d).copy()
    _check(prefix, n, mean, squares)
    check_moments(f"{prefix}_sums", n, mean, squares)
    facts = floats(sections, f"{prefix}_inverse_facts", (None, 3)).tolist()
    if len(facts) not in {1, n_classes} or any(has not in {0, 1} or age < 0 for has, _, age in facts):
        raise SnapshotError(f"The inverses of `{prefix}` do not match its classes.", HINT)
    kept = sum(has == 1 for has, _, _ in facts)
    matrices = iter(floats(sections, f"{prefix}_inverses", (kept * d, d or 1)).reshape(kept, d, d))
    inverses = [InverseScatter() for _ in range(1 if shared else n_classes)]
    if len(facts) == len(inverses):  # otherwise they belong to the other kind of covariance
        for inverse, (has, log_det, age) in zip(inverses, facts, strict=True):
            inverse.matrix = next(matrices).copy() if has else None
            inverse.log_det, inverse.age = log_det, int(age)
    return ScatterArrays(names, n, mean, squares, inverses)


def _names(sections: Sections, prefix: str) -> list[str]:
    blob = section(sections, f"{prefix}_names", np.uint8)
    ends = section(sections, f"{prefix}_name_ends", np.uint64).tolist()
    if ends != sorted(ends) or (ends[-1] if ends else 0) != blob.size:
        raise SnapshotError(f"The names of `{prefix}` overlap or lie outside their section.", HINT)
    raw = blob.tobytes()
    try:
        names = [raw[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]
    except UnicodeDecodeError as error:
        raise SnapshotError(f"A name of `{prefix}` is not UTF-8.", HINT) from error
    if len(set(names)) < len(names):
        raise SnapshotError(f"A name of `{prefix}` occurs twice.", HINT)
    return names


def _check(prefix: str, n: Floats, mean: Floats, squares: Floats) -> None:
    own = np.diagonal(n, axis1=1, axis2=2)
    symmetric = all(bool((a == a.transpose(0, 2, 1)).all()) for a in (n, squares))
    signs = bool((n >= 0).all()) and bool((np.diagonal(squares, axis1=1, axis2=2) >= 0).all())
    pairs = bool((n <= np.minimum(own[:, :, None], own[:, None, :]) * (1.0 + 1e-9)).all())
    empty = not bool(mean[n == 0].any() or squares[n == 0].any())
    if not (symmetric and signs and pairs and empty):
        raise SnapshotError(f"Section `{prefix}_sums` holds sums that contradict each other.", HINT)
