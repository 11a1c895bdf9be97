"""Compiled twins: whether they are wanted, and one warning where a compiler was missing.

A twin is a compiled module that gives the same bits as a plain one beside it, and is faster. The plain module
is the specification. ``STREAMNB_PURE=1`` chooses the plain ones.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from types import ModuleType

WANTED = os.environ.get("STREAMNB_PURE", "") in {"", "0"}
"""Whether compiled twins are used where they were built."""

_warned: list[str] = []


def load(module: str) -> ModuleType | None:
    """Import a compiled twin by its dotted name; ``None`` where it is not wanted or was not built."""
    if not WANTED:
        return None
    try:
        return import_module(module)
    except ImportError as error:
        not_built(error)
        return None


def not_built(error: ImportError) -> str:
    """Return why there is no compiled twin, and warn of it once per process: it costs a factor of fifty."""
    reason = f"the kernel was not built ({error}); install a C compiler and streamnb again"
    if not _warned:
        _warned.append(reason)
        warnings.warn(f"streamnb runs in plain Python, about fifty times slower: {reason}", stacklevel=3)
    return reason
