"""`streamnb snapshot pin` and `unpin`: keep a snapshot whatever comes after it."""

from __future__ import annotations

from streamnb.cli.options import (
    DirectoryArgument,
    SequenceArgument,
)
from streamnb.storage import pin as pin_snapshot
from streamnb.storage import unpin as unpin_snapshot


def pin(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Keep a snapshot whatever comes after it."""
    pin_snapshot(directory, sequence)
    print(f"snapshot {sequence} stays until it is unpinned")


def unpin(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Let a pinned snapshot go when its time has come."""
    unpin_snapshot(directory, sequence)
    print(f"snapshot {sequence} is no longer pinned")
