"""Each fault of the catalogue is held by tests that exist and that run, or has a reason why it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.catalogue import BY_OTHER_NAMES, NAMED, ROWS, TESTS, WITHOUT, held_by, not_run

PACKAGE = TESTS.parent / "streamnb"


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


@pytest.mark.parametrize("row", ROWS)
def test_every_fault_has_a_test_or_a_reason_why_not(row: str) -> None:
    """Not both; the rows of the core, which matter most, have a test. `Outcomes` sees whether they ran."""
    tests = held_by()[row]
    assert bool(tests) != (row in WITHOUT), tests or f"no test holds {row}"
    assert tests or row not in CORE


@pytest.mark.parametrize("row", BY_OTHER_NAMES)
def test_the_tests_of_other_names_exist(row: str) -> None:
    """Each is a function of its file."""
    for name in BY_OTHER_NAMES[row]:
        file, _, test = name.partition("::")
        assert f"\ndef {test}(" in (TESTS / file).read_text(), name


def test_no_name_has_a_row_that_the_catalogue_lacks() -> None:
    """Such as a misspelt one; the letters F and later have lists of their own."""
    named = {
        row
        for path in TESTS.rglob("test_*.py")
        for _, rows in NAMED.findall(path.read_text())
        for row in rows.rstrip("_").split("_")
    }
    assert {row for row in named if row[0] in "ABCDEG"} <= set(ROWS)


def test_a_row_whose_test_did_not_run_is_noticed() -> None:
    """One that was only skipped is told apart, and one test that passed is enough if all ran."""
    held = {"A1": ["a::test_x"], "A2": ["a::test_y", "a::test_z"], "A3": []}
    ran = {"a::test_x": {"passed"}, "a::test_y": {"skipped"}, "a::test_z": {"skipped", "passed"}}
    assert not_run(held, ran) == ([], [])
    assert not_run(held, ran | {"a::test_x": {"skipped"}}) == (
        [],
        ["A1: every test was skipped (a::test_x)."],
    )
    del ran["a::test_z"]
    assert not_run(held, ran) == (["A2: a::test_z did not run."], [])


CONFTEST = """
from tests.support.catalogue import Outcomes

def pytest_configure(config):
    config.pluginmanager.register(Outcomes({"A1": ["test_a.py::test_x"], "A2": ["test_b.py::test_y"]}))
"""
RUNS = "def test_x():\n    pass\n"
SKIPS = "import pytest\n\ndef test_y():\n    pytest.skip('no broker')\n"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("second", "ci", "code", "line"),
    [
        ("def test_y():\n    pass\n", "true", 0, ""),
        ("def test_renamed():\n    pass\n", "", 1, "A2: test_b.py::test_y did not run."),
        (SKIPS, "", 0, "A2: every test was skipped"),
        (SKIPS, "true", 1, "A2: every test was skipped"),
    ],
    ids=["all run", "one does not exist", "one is skipped", "one is skipped in CI"],
)
def test_a_run_of_the_whole_suite_fails_for_a_row_that_was_left_out(
    tmp_path: Path, workers: list[str], second: str, ci: str, code: int, line: str
) -> None:
    """With workers too; a run of one file does not."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_a.py").write_text(RUNS)
    (tmp_path / "test_b.py").write_text(second)
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(TESTS.parent)}
    environment.pop("PYTEST_XDIST_WORKER", None)

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    whole = ran(*workers)
    assert whole.returncode == code, whole.stdout + whole.stderr
    assert line in whole.stdout
    assert bool(line) == ("The catalogue of faults" in whole.stdout)
    if not workers and code:
        assert ran("test_a.py").returncode == 0


def test_C12_nothing_forks() -> None:
    """A fork would copy the sockets and the locks of the clients' threads."""
    for path in PACKAGE.rglob("*.py"):
        assert not re.search(r"\bos\.fork|\bmultiprocessing\b|ProcessPoolExecutor", path.read_text()), path
