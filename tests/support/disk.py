"""What the tests of files, locks and lines share: calls that are refused, processes that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from streamnb.storage import files


class Fault:
    """Stands before a function of `os` and refuses its n-th call, and every later one if sticky."""

    def __init__(self, real: Callable[..., object], number: int, nth: int, *, sticky: bool) -> None:
        self.real, self.number, self.nth, self.sticky = real, number, nth, sticky
        self.calls = 0

    def __call__(self, *arguments: object, **options: object) -> object:
        """Refuse, or do what the real function does."""
        self.calls += 1
        if self.calls == self.nth or (self.sticky and self.calls > self.nth):
            raise OSError(self.number, os.strerror(self.number))
        return self.real(*arguments, **options)


def run_python(script: str, *arguments: object, **options: object) -> subprocess.Popen[bytes]:
    """Another interpreter that can import streamnb."""
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=environment, **options)  # type: ignore[call-overload, no-any-return]


def names(directory: Path) -> list[str]:
    """Everything in a directory, hidden names too."""
    return sorted(entry.name for entry in directory.iterdir())
