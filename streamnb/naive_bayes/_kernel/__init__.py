"""The compiled twins of counts, step and whatever else each message passes, or word of why there are none.

The plain modules are the specification; the twins give the same bits, sooner. ``STREAMNB_PURE=1`` chooses
the plain ones. Where the twins were not built (no C compiler at install time) that is said aloud, because
it costs a factor of fifty.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamnb.naive_bayes._kernel.buffers import Buffer
    from streamnb.naive_bayes._kernel.counts import CountStore
    from streamnb.naive_bayes._kernel.lines import split
    from streamnb.naive_bayes._kernel.occurrences import Occurrences
    from streamnb.naive_bayes._kernel.per_name import FieldTotal, Moments
    from streamnb.naive_bayes._kernel.step import Driver
    from streamnb.naive_bayes._kernel.template import filled

    compiled: bool
    reason: str

__all__ = [
    "CountStore",
    "Driver",
    "FieldTotal",
    "Moments",
    "Occurrences",
    "compiled",
    "filled",
    "memory",
    "reason",
    "split",
]

compiled, reason = False, "STREAMNB_PURE is set"
if os.environ.get("STREAMNB_PURE", "") in {"", "0"}:
    try:
        from streamnb.naive_bayes._kernel.buffers import Buffer
        from streamnb.naive_bayes._kernel.counts import CountStore
        from streamnb.naive_bayes._kernel.lines import split
        from streamnb.naive_bayes._kernel.occurrences import Occurrences
        from streamnb.naive_bayes._kernel.per_name import FieldTotal, Moments
        from streamnb.naive_bayes._kernel.step import Driver
        from streamnb.naive_bayes._kernel.template import filled
    except ImportError as error:
        reason = f"the kernel was not built ({error}); install a C compiler and streamnb again"
        warnings.warn(f"streamnb runs in plain Python, about fifty times slower: {reason}", stacklevel=2)
    else:
        compiled, reason = True, ""


def memory(size: int) -> memoryview:
    """So many bytes to write to, which a compiled store takes over without a copy.

    Examples
    --------
    >>> len(memory(16))
    16
    """
    return memoryview(Buffer(size)) if compiled else np.empty(size, np.uint8).data
