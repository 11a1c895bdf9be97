"""Helpers for the tests of files, locks and lines: system calls that fail, and processes to kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from streamnb.storage import files


class Fault:
    """A replacement of a function of `os` that fails at the n-th call, and at all later ones if sticky."""

    def __init__(self, real: Callable[..., object], number: int, nth: int, *, sticky: bool) -> None:
        self.real, self.number, self.nth, self.sticky = real, number, nth, sticky
        self.calls = 0

    def __call__(self, *arguments: object, **options: object) -> object:
        """Raise the error, or call the real function."""
        self.calls += 1
        if self.calls == self.nth or (self.sticky and self.calls > self.nth):
            raise OSError(self.number, os.strerror(self.number))
        return self.real(*arguments, **options)


def run_python(script: str, *arguments: object, **options: object) -> subprocess.Popen[bytes]:
    """Start another interpreter that can import streamnb, and run a script in it."""
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=environment, **options)  # type: ignore[call-overload, no-any-return]


def names(directory: Path) -> list[str]:
    """Return the sorted names in a directory, including hidden ones."""
    return sorted(entry.name for entry in directory.iterdir())
