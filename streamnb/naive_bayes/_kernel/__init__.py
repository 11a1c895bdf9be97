"""The compiled twins of `model.step` and of what it needs: tokenizer, statistics, event models and heads.

The plain modules are the specification; the twins give the same bits, faster. After Cython's directives,
the line `# Twin of:` lists the plain modules that a file mirrors, or `nothing`. Most files are named after
the first module in that line. If the twins were not built, `compiled` is False and `reason` is the cause.
Nothing outside `streamnb.naive_bayes` imports from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamnb.base import twins

if TYPE_CHECKING:
    from streamnb.naive_bayes._kernel.absent_words import AbsentWords
    from streamnb.naive_bayes._kernel.buffers import Buffer
    from streamnb.naive_bayes._kernel.counts import CountStore
    from streamnb.naive_bayes._kernel.field_totals import FieldTotal
    from streamnb.naive_bayes._kernel.moments import Moments
    from streamnb.naive_bayes._kernel.step import Driver

    compiled: bool
    reason: str

__all__ = ["AbsentWords", "CountStore", "Driver", "FieldTotal", "Moments", "compiled", "memory", "reason"]

compiled, reason = False, "STREAMNB_PURE is set"
if twins.WANTED:
    try:
        from streamnb.naive_bayes._kernel.absent_words import AbsentWords
        from streamnb.naive_bayes._kernel.buffers import Buffer
        from streamnb.naive_bayes._kernel.counts import CountStore
        from streamnb.naive_bayes._kernel.field_totals import FieldTotal
        from streamnb.naive_bayes._kernel.moments import Moments
        from streamnb.naive_bayes._kernel.step import Driver
    except ImportError as error:
        reason = twins.not_built(error)
    else:
        compiled, reason = True, ""


def memory(size: int) -> memoryview:
    """Return `size` writable bytes, which a compiled store takes over without a copy.

    Examples
    --------
    >>> len(memory(16))
    16
    """
    return memoryview(Buffer(size)) if compiled else np.empty(size, np.uint8).data
