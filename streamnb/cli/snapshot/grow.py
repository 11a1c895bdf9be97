"""`streamnb snapshot grow`: give a snapshot the views of another configuration."""

from __future__ import annotations

from streamnb.cli.options import ConfigOption, OutputOption, SnapshotArgument, readable


def grow(snapshot: SnapshotArgument, config: ConfigOption, output: OutputOption) -> None:
    """Give a snapshot the views of another configuration.

    Views that both have are kept, new ones start empty, the others are dropped. Unlike with `run --from`,
    offsets stay, so that the engine resumes from the new snapshot where the old one ended.
    """
    from streamnb.config import grown, load_settings, load_snapshot
    from streamnb.storage import write_snapshot

    held = load_snapshot(snapshot)
    result = grown(load_settings(config), held, snapshot)
    size = write_snapshot(output, result)
    if len(result.lineage) > len(held.lineage):
        views = result.lineage[-1]
        print("; ".join(f"{what}: {readable(views[what])}" for what in ("kept", "new", "dropped")))
    print(f"{output}: {size} bytes, digest {result.digest['all']}")
