"""The machine's clock; tests pass another `Clock`, which they move by hand."""

from __future__ import annotations

import time


class SystemClock:
    """Reads the machine's clock."""

    def monotonic_s(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000
