"""`streamnb snapshot verify`: check every byte of a snapshot."""

from __future__ import annotations

from streamnb.cli.options import (
    SnapshotArgument,
)


def verify(snapshot: SnapshotArgument) -> None:
    """Check every byte, restore the state, and compute its digest again."""
    from streamnb.config import verify_snapshot

    print(f"{snapshot}: whole; digest {verify_snapshot(snapshot)}")
