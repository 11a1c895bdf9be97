"""Conditions that must hold before the engine resumes from a snapshot; otherwise it stops with an error.

The last one must also hold before anything is kept: a topic can be re-created while the process is stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streamnb.base import Snapshot, Source, Start, check_unicode, differences
from streamnb.errors import MismatchError, PositionError, SettingsError, TransportError

_log = logging.getLogger("streamnb.engine")


def starting_point(
    newest: Snapshot | None, begin_from: Snapshot | None, start: Start | None
) -> Snapshot | None:
    """Return the snapshot to restore: the newest, or at a first start `begin_from`, which may be ``None``.

    Parameters
    ----------
    newest : Snapshot or None
        The newest of the directory.
    begin_from : Snapshot or None
        Statistics to begin a first start with. The source is then read from `start`, or from its beginning
        if that is ``None``.
    start : Start or None
        `engine.start`.

    Raises
    ------
    SettingsError
        Both snapshots are given, or neither a snapshot nor `start`.
    """
    if newest is not None and begin_from is not None:
        raise SettingsError(
            "There are snapshots in the directory already, so the engine cannot begin from another one.",
            "Leave out `--from` to resume from them, or set another `snapshots.directory`.",
        )
    if newest is None and begin_from is None and start is None:
        raise SettingsError(
            "`engine.start` is not set, and there is no snapshot to resume from.",
            'Set it to "earliest", "latest" or a time in milliseconds since 1970.',
        )
    return newest if newest is not None else begin_from


def check_statistics(snapshot: Snapshot, statistics: Mapping[str, object]) -> None:
    """Check that the settings which the counts depend on are the snapshot's.

    A model that was saved from Python has read no records: its snapshot has no settings of messages.

    Raises
    ------
    MismatchError
        They differ; the error names each difference.
    SnapshotError
        It was made with another Unicode table, which no setting chooses.
    """
    check_unicode(snapshot, statistics, f"Snapshot {snapshot.sequence}")
    now = {name: statistics[name] for name in statistics if name in snapshot.statistics or name == "model"}
    changes = differences(snapshot.statistics, now)
    if changes:
        raise MismatchError(
            f"Snapshot {snapshot.sequence} was made with other settings: {'; '.join(changes)}.",
            "Its counts have another meaning. Restore the settings, set another `snapshots.directory`, or "
            "keep the views that are the same: `streamnb snapshot grow`.",
        )


def check_identity(source: Mapping[str, str], identity: Mapping[str, str], when: str) -> None:
    """Check that offsets belong to the log that is read: in another log they belong to other records.

    Parameters
    ----------
    source : mapping of str to str
        The identity of the log that the offsets were taken from.
    identity : mapping of str to str
        The identity of the log now.
    when : str
        When that identity was read, for the error.

    Raises
    ------
    PositionError
        The cluster or a topic is another one, perhaps under the same name.
    """
    for name, then in source.items():
        now = identity.get(name, then)
        if now != then:
            is_topic = name.startswith("topic ")
            what = f"T{name[1:]} was re-created: its id" if is_topic else f"The {name}"
            raise PositionError(
                f"{what} is now {now}, but it was {then} {when}, so the offsets from that time "
                "belong to other records.",
                "To read the new records, set a new `snapshots.directory`; `--from` with the newest snapshot "
                "keeps the model. Or point `[source]` at the snapshot's log.",
            )


def is_same_log(source: Source, identity: Mapping[str, str]) -> bool:
    """Return whether the source still reads the log with this identity; False if it cannot be asked.

    Parameters
    ----------
    source : Source
    identity : mapping of str to str
        The identity of the log when it was opened.

    Raises
    ------
    PositionError
        The cluster or a topic is another one.
    """
    try:
        now = source.identity()
    except TransportError as error:
        _log.warning("it is not known whether a topic was re-created: %s", error)
        return False
    check_identity(identity, now, "when the engine opened it")
    return True
