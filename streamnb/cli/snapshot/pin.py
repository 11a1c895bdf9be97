"""`streamnb snapshot pin` and `unpin`: protect a snapshot from removal, or end that protection."""

from __future__ import annotations

from streamnb.cli.options import (
    DirectoryArgument,
    SequenceArgument,
)


def pin(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Pin a snapshot: it is kept until unpinned."""
    from streamnb.storage import pin as pin_snapshot

    pin_snapshot(directory, sequence)
    print(f"snapshot {sequence} is kept until unpinned")


def unpin(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Unpin a snapshot, so that it is removed once it expires."""
    from streamnb.storage import unpin as unpin_snapshot

    unpin_snapshot(directory, sequence)
    print(f"snapshot {sequence} is no longer pinned")
