"""Streams for tests: real ones if their folder exists beside the project, otherwise a generated mailbox."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson

from streamnb.cli.demo.mailbox import mailbox

DATA = Path(__file__).parents[3] / "shared" / "data"


def lines_of(stream: str) -> list[bytes]:
    """Return the JSON lines of a real stream, or of 5,000 messages of the demo's mailbox."""
    if stream == "mailbox":
        return [
            orjson.dumps({key: mail[key] for key in ("id", "text", "label")}) for mail in mailbox(0, 5000)
        ]
    with gzip.open(DATA / f"{stream}.jsonl.gz") as file:
        return [line.rstrip(b"\n") for line in file]


def streams_at_hand(*wanted: str) -> list[str]:
    """Return those of the wanted streams that exist, or the generated mailbox if none does."""
    found = [stream for stream in wanted if (DATA / f"{stream}.jsonl.gz").exists()]
    return found or ["mailbox"]
