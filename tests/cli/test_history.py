"""The lines of a file that are not usable messages are counted, whatever is wrong with them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from streamnb.cli import history
from streamnb.transports.jsonl import JsonlSource
from streamnb.wire import Decoder, MessageFields


def test_a_line_that_is_too_long_is_refused_as_one_that_is_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of both kinds is named."""
    monkeypatch.setattr(history, "JsonlSource", partial(JsonlSource, line_bytes_max=40))
    path = tmp_path / "mail.jsonl"
    long = b'{"text": "' + b"x" * 50 + b'"}'
    path.write_bytes(b"\n".join([b'{"text": "a"}', long, b"{", b'{"text": "b"}', long, b""]))
    read = history.History(str(path), Decoder(MessageFields()))
    messages = [text for batch in history.batches_of(read) for text in batch.fields["text"]]

    assert messages == ["a", "b"]
    assert (read.read, read.refused) == (5, 3)
    assert read.first_refusal == f"{path}, line 2: line of {len(long)} bytes"
