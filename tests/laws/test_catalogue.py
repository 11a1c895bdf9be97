"""Each fault that matters most has a test of its name, or one that was there before the names were."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"^def test_((?:[A-G]\d+_)+)", re.MULTILINE)


def rows(letter: str, *numbers: int) -> list[str]:
    """``A1``, ``A2``, ..."""
    return [f"{letter}{number}" for number in numbers]


CORE = [
    *rows("A", *range(1, 18)),  # bad input
    *rows("B", *range(1, 9), *range(11, 19)),  # broker and consumer group
    *rows("C", *range(1, 8)),  # process
    *rows("D", *range(1, 11)),  # disk
    *rows("F", 1, 2, 3, 5, 6),  # attacks on the model
    *rows("G", 1, 2, 5, 8, 9, 11),  # the pages, names from outside, pickles, secrets
]

# Tests that are older than the names: what they hold is the row.
BY_OTHER_NAMES = {
    "C4": "kafka/test_pipeline.py::test_a_second_signal_exits_at_once_without_harm",
    "C5": "kafka/test_crash.py::test_C1_C3_B2_B3_no_accident_loses_or_doubles_a_message",
}


def named_by_row() -> dict[str, list[str]]:
    """The tests that carry a row's name, of each row."""
    found: dict[str, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for names in NAMED.findall(path.read_text()):
            for row in names.rstrip("_").split("_"):
                found.setdefault(row, []).append(path.name)
    return found


@pytest.mark.parametrize("row", CORE)
def test_every_core_fault_has_a_test(row: str) -> None:
    """By its name, or by the one that is named here and exists."""
    file, _, name = BY_OTHER_NAMES.get(row, "").partition("::")
    by_another_name = file and f"def {name}(" in (TESTS / "transports" / file).read_text()

    assert by_another_name or named_by_row().get(row), f"no test is named test_{row}_..."
