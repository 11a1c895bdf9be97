"""Which scores are too large to publish: a score travels with its record's key."""

from __future__ import annotations

import pytest

from streamnb.wire import too_large
from streamnb.wire.message import KEY_BYTES_MAX


@pytest.mark.parametrize("key", [None, b"", b"k" * 100])
def test_the_limit_covers_score_and_key(key: bytes | None) -> None:
    """Together they may have exactly as many bytes; rows are told apart."""
    value = b"x" * (2 * KEY_BYTES_MAX)
    size = len(value) + len(key or b"")
    assert too_large([b"{}", value, b"{}"], [b"", key, None], size) == []
    assert too_large([b"{}", value, b"{}"], [b"", key, None], size - 1) == [1]
