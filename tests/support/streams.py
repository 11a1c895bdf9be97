"""Where the tests find streams: real ones where the folder beside the project is, the mailbox elsewhere."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson

from streamnb.cli.demo.mailbox import mailbox

DATA = Path(__file__).parents[3] / "shared" / "data"


def lines_of(stream: str) -> list[bytes]:
    """The JSON lines of a real stream, or of 5,000 messages of the demo's mailbox."""
    if stream == "mailbox":
        return [
            orjson.dumps({key: mail[key] for key in ("id", "text", "label")}) for mail in mailbox(0, 5000)
        ]
    with gzip.open(DATA / f"{stream}.jsonl.gz") as file:
        return [line.rstrip(b"\n") for line in file]


def streams_at_hand(*wanted: str) -> list[str]:
    """The wanted streams where the folder of streams is found, and the generated mailbox where it is not."""
    found = [stream for stream in wanted if (DATA / f"{stream}.jsonl.gz").exists()]
    return found or ["mailbox"]
