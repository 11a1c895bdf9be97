"""Loading of compiled twins, with one warning if they were not built.

A twin is a compiled module that returns the same bits as a plain Python module, only faster. The plain module
is the specification. ``STREAMNB_PURE=1`` in the environment selects the plain modules.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from types import ModuleType

WANTED = os.environ.get("STREAMNB_PURE", "") in {"", "0"}
"""Whether to use compiled twins if they were built."""

_warned: list[str] = []


def load(module: str) -> ModuleType | None:
    """Import a compiled twin by its dotted name; return ``None`` if it is not wanted or was not built."""
    if not WANTED:
        return None
    try:
        return import_module(module)
    except ImportError as error:
        not_built(error)
        return None


def not_built(error: ImportError) -> str:
    """Return why there is no compiled twin, and warn once per process that plain Python is slow."""
    reason = f"the kernel was not built ({error}); install a C compiler, then reinstall streamnb"
    if not _warned:
        _warned.append(reason)
        warnings.warn(f"streamnb runs in plain Python, fifty to eighty times slower: {reason}", stacklevel=3)
    return reason
