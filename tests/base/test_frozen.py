"""Sections of a snapshot: a missing, mistyped or impossible one is refused, and the error names it."""

import numpy as np
import pytest

from streamnb.base.frozen import Section, counted, section
from streamnb.errors import SnapshotError


def test_a_section_is_found_by_name_and_type() -> None:
    """The array itself is returned, not a copy."""
    array = np.array([1, 2], np.uint64)
    assert section({"ends": array}, "ends", np.uint64) is array


@pytest.mark.parametrize("array", [np.array([1.0]), np.array([1], np.int64), np.array([b"x"])])
def test_another_type_is_refused(array: Section) -> None:
    """Sections are never converted: another type means that streamnb did not write the file."""
    with pytest.raises(SnapshotError, match="`ends` is missing or not uint64"):
        section({"ends": array}, "ends", np.uint64)


def test_a_missing_section_is_refused() -> None:
    """The error names the section and has a hint."""
    with pytest.raises(SnapshotError, match=r"`ends` is missing.*Use another snapshot"):
        section({}, "ends", np.uint64)


def test_counts_of_the_right_shape_pass() -> None:
    """``None`` allows any number of rows, including 0."""
    for rows in (0, 1, 5):
        array = np.zeros((rows, 2))
        assert counted({"x": array}, "x", (None, 2)) is array


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2),
        np.zeros((1, 3)),
        np.zeros((3, 2)),
        np.zeros((2, 2, 1)),
        np.array([[0.0, np.nan], [0.0, 0.0]]),
        np.array([[0.0, np.inf], [0.0, 0.0]]),
        np.array([[0.0, -1e-300], [0.0, 0.0]]),
        np.array([[0.0, 1e201], [0.0, 0.0]]),
        np.zeros((2, 2), np.float32),
    ],
)
def test_counts_that_no_stream_gives_are_refused(array: Section) -> None:
    """A wrong shape or type, a number that is not finite or is below 0, and one above `COUNTED_MAX`."""
    with pytest.raises(SnapshotError, match="`x`"):
        counted({"x": array}, "x", (2, 2))
