"""A mutant tried: a copy of the checkout with one defect, in which tests run."""

from __future__ import annotations

import importlib.util
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from tests.mutants.catalogue import Mutant, NotAMutantError
from tests.mutants.compiling import compiled, library

TIMEOUT_S = 600.0  # a mutant may hang where its tests have no limit of their own
PARTS = ("streamnb", "tests", "configs", "deploy", "docs")
FILES = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    "LICENSE",
    "SECURITY.md",
)
PASSED, FAILED = 0, 1
UNDECIDED = range(2, 6)  # exit codes of pytest after which no test has decided
LINES = 12  # of output, where a run could not be judged


class Verdict(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNJUDGED = "not judged"


Judgement = tuple[Mutant, Verdict, float, str]


def unmutated(checkout: Path, mutants: Sequence[Mutant]) -> str:
    """Run all named tests in a copy without a defect; return the output's end if they fail, else ""."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    if not tests:
        return ""
    with _copied(checkout) as copy:
        code, said = _run(copy, tests, timeout_s=TIMEOUT_S * 6)
    return "" if code == PASSED else said


def judged(checkout: Path, mutants: Sequence[Mutant], *, jobs: int, builder: str) -> Iterator[Judgement]:
    """Try each mutant, `jobs` at a time, and yield what became of it, in the order in which trials end."""
    copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for i in range(jobs):
            copies.put(_copy(checkout, Path(folder) / str(i)))

        def trial(mutant: Mutant) -> Judgement:
            copy, began = copies.get(), time.monotonic()
            try:
                verdict, why = _tried(copy, mutant, builder)
            finally:
                copies.put(copy)
            return mutant, verdict, time.monotonic() - began, why

        for done in as_completed([pool.submit(trial, mutant) for mutant in mutants]):
            yield done.result()


def _tried(copy: Path, mutant: Mutant, builder: str) -> tuple[Verdict, str]:
    """Return the verdict on one mutant, and why there is none."""
    file = copy / mutant.file
    whole = file.read_text()
    built = library(copy, mutant) if mutant.rebuild else None
    kept = built.read_bytes() if built is not None else b""
    try:
        _write(file, mutant.applied(whole))
        if mutant.rebuild:
            compiled(copy, mutant, builder)
        code, said = _run(copy, mutant.tests, timeout_s=TIMEOUT_S)
    except NotAMutantError as error:
        return Verdict.UNJUDGED, str(error)
    except subprocess.TimeoutExpired:
        return Verdict.KILLED, f"no test ended within {TIMEOUT_S:.0f} s"
    finally:
        _write(file, whole)
        if built is not None:
            built.unlink(missing_ok=True)  # a new file: a process may still have the old one mapped
            built.write_bytes(kept)
    if code == PASSED:
        return Verdict.SURVIVED, mutant.why
    if code in UNDECIDED:
        return Verdict.UNJUDGED, f"pytest ended with {code}:\n{said}"
    # Other codes are those of a process that the defect has ended, such as by a fault in memory.
    return Verdict.KILLED, "" if code == FAILED else f"the tests ended with {code}"


def _run(copy: Path, tests: Sequence[str], *, timeout_s: float) -> tuple[int, str]:
    """Run tests in a copy; return pytest's exit code and the end of what it printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-LINES:])


def _write(file: Path, text: str) -> None:
    """Replace a source file, and drop the old bytecode: both files may have size and time in common."""
    file.write_text(text)
    if file.suffix == ".py":
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


@contextmanager
def _copied(checkout: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        yield _copy(checkout, Path(folder) / "0")


def _copy(checkout: Path, to: Path) -> Path:
    """Copy what tests need, compiled modules included."""
    ignored = shutil.ignore_patterns("__pycache__", "*.c", "*.html")
    for part in PARTS:
        if (checkout / part).is_dir():
            shutil.copytree(checkout / part, to / part, ignore=ignored)
    for name in FILES:
        if (checkout / name).is_file():
            shutil.copy2(checkout / name, to / name)
    return to
