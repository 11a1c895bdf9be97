"""The listed mutants still apply, their tests exist, and the script tells killed from survived."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import main
from tests.mutants.catalogue import CHECKOUT, Mutant, NotAMutantError, fault, listed

MUTANTS = listed()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_applies_and_its_tests_exist(mutant: Mutant) -> None:
    """Its text occurs once in its file, which is still Python with the defect in it."""
    assert fault(mutant) == ""
    assert mutant.why.endswith(".")


def test_those_that_take_long_come_last() -> None:
    """What must be compiled again follows what need not; there are enough of both."""
    rebuilt = [mutant.rebuild for mutant in MUTANTS]
    assert rebuilt == sorted(rebuilt)
    assert len(MUTANTS) > 100
    assert any(rebuilt)


def _mutant(**changes: object) -> Mutant:
    given = {"name": "m", "file": "pyproject.toml", "old": "x", "new": "y", "why": "It hurts.", "tests": []}
    return Mutant(**(given | changes))  # type: ignore[arg-type]


def test_a_mutant_whose_text_is_not_found_exactly_once_is_an_error() -> None:
    """The list must be corrected: such a mutant tests nothing."""
    assert _mutant(old="b").applied("abc") == "ayc"
    for text in ("", "ac", "abcb"):
        with pytest.raises(NotAMutantError, match="does not apply: its text occurs"):
            _mutant(old="b").applied(text)
    with pytest.raises(NotAMutantError):
        _mutant(old="b", new="b").applied("abc")
    test = "tests/laws/test_mutants.py::test_those_that_take_long_come_last"
    code = {"file": "tests/mutants/__main__.py", "old": '"""Run, print, return the exit code."""'}
    assert fault(_mutant(**code, new="pass", tests=[test])) == ""
    assert "do not exist" in fault(_mutant(**code, new="pass", tests=[f"{test}_indeed"]))
    assert "do not exist" in fault(_mutant(**code, new="pass"))
    assert "invalid syntax" in fault(_mutant(**code, new="pass pass", tests=[test]))
    assert "does not exist" in fault(_mutant(file="nowhere.py"))
    assert "`rebuild`" in fault(_mutant(**code, new="pass", tests=[test], rebuild=True))


LIST = """
[[mutant]]
name = "{name}"
file = "streamnb/adding.py"
old = "a + b"
new = "{new}"
why = "Sums are wrong."
tests = ["tests/test_adding.py::{test}"]
"""
ADDING = "def add(a, b):\n    return a + b\n"
TESTS = """
from streamnb.adding import add

def test_small():
    assert add(0, 0) == 0

def test_large():
    assert add(2, 3) == 5

def test_that_fails_anyway():
    assert add(1, 1) == 3
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a small checkout with this script in it, an addition and three tests of it."""
    (tmp_path / "streamnb").mkdir()
    shutil.copytree(CHECKOUT / "tests" / "mutants", tmp_path / "tests" / "mutants")
    for path in (tmp_path / "tests" / "mutants").glob("*.toml"):
        path.unlink()
    (tmp_path / "streamnb" / "__init__.py").touch()
    (tmp_path / "streamnb" / "adding.py").write_text(ADDING)
    (tmp_path / "tests" / "test_adding.py").write_text(TESTS)
    return tmp_path


@pytest.mark.parametrize(
    ("new", "test", "code", "said"),
    [
        ("a - b", "test_large", 0, "killed       m "),
        ("a - b", "test_small", 1, "survived     m "),
        ("a + c", "test_small", 0, "killed       m "),
        ("(_ for _ in ()).throw(SystemExit(69))", "test_small", 0, "killed       m "),
        ("a - b", "test_that_fails_anyway", 2, "The tests fail without a mutant"),
        ("a - b", "test_renamed", 2, "The tests fail without a mutant"),
    ],
)
def test_the_script_tells_what_became_of_a_mutant(
    checkout: Path, new: str, test: str, code: int, said: str
) -> None:
    """Killed where a test fails, survived where none does, and an error where that means nothing."""
    (checkout / "tests" / "mutants" / "own.toml").write_text(LIST.format(name="m", new=new, test=test))
    command = [sys.executable, "-m", "tests.mutants"]
    environment = {"PYTHONPATH": str(checkout), "PATH": ""}
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert (checkout / "streamnb" / "adding.py").read_text() == ADDING


def test_mutants_run_side_by_side_in_copies_of_their_own(checkout: Path) -> None:
    """One after the other in a copy, each in the place of the one before; `--only` chooses one."""
    mutants = [
        ("first", "a - b", "test_large"),
        ("second", "a * b", "test_small"),
        ("third", "b", "test_large"),
    ]
    text = "".join(LIST.format(name=name, new=new, test=test) for name, new, test in mutants)
    (checkout / "tests" / "mutants" / "own.toml").write_text(text)

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.mutants", *arguments],
            cwd=checkout,
            env={"PYTHONPATH": str(checkout), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    every = ran("--jobs", "2")
    assert every.returncode == 1, every.stderr
    assert every.stdout.splitlines()[-1] == "2 killed, 1 survived, 0 not judged of 3 mutants"
    assert "survived     second" in every.stdout
    assert ran("--only", "third").stdout.splitlines()[-1] == "1 killed, 0 survived, 0 not judged of 1 mutants"


def test_the_list_is_printed_and_a_wrong_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Without running anything."""
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(MUTANTS)
    assert main(["--only", "no such mutant"]) == 2
    assert "No mutant has the name no such mutant" in capsys.readouterr().err
