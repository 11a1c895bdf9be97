"""The machine's clock, behind the Protocol that tests move by hand."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clock."""

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
