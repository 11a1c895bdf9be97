"""`streamnb snapshot verify`: check that a snapshot is intact and can be restored."""

from __future__ import annotations

from streamnb.cli.options import (
    SnapshotArgument,
)


def verify(snapshot: SnapshotArgument) -> None:
    """Check that a snapshot is intact.

    Every byte is checked, the model is restored, and its digest is computed again and compared.
    """
    from streamnb.config import verify_snapshot

    print(f"{snapshot}: intact; digest {verify_snapshot(snapshot)}")
