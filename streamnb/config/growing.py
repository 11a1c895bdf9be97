"""Begin from a snapshot whose views are not those of the settings: `run --from` and `snapshot grow`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamnb import __version__
from streamnb.base import Snapshot, check_unicode, differences
from streamnb.config.models import build_decoder, build_model, model_description, restore_model
from streamnb.config.settings import Settings
from streamnb.engine import SystemClock
from streamnb.errors import MismatchError, SettingsError
from streamnb.naive_bayes import grow, setting_differences

_log = logging.getLogger("streamnb")

_KINDS = ("category", "number", "flag")


def grown(settings: Settings, snapshot: Snapshot, path: Path) -> Snapshot:
    """Return a snapshot to begin from under these settings: the same, or one with other views.

    Parameters
    ----------
    settings : Settings
    snapshot : Snapshot
    path : Path
        Its file, for errors.

    Returns
    -------
    Snapshot
        Views that the settings have too are kept, new ones are empty, others are dropped; the lineage names
        all of them. Offsets stay. The trust of tokens is dropped too, and named, if the settings turn it off.
        If nothing is new or dropped, the snapshot itself.

    Raises
    ------
    SettingsError
        Its classes are numbers or truth values, which no message of a stream has as a label.
    MismatchError
        A view that both have, or any other setting of the statistics, differs.
    """
    _check_classes(snapshot, path)
    model, message = build_model(settings), build_decoder(settings).state_settings()
    check_unicode(snapshot, {"model": model.state_settings()}, str(path))
    before: Any = snapshot.statistics.get("model", {})
    changes = [f"model.{line}" for line in setting_differences(before, model.state_settings())]
    if "message" in snapshot.statistics:  # a model that was saved from Python has read no records
        changes += _message_differences(snapshot.statistics["message"], message)
    changes = [line.removeprefix("model.") if line.startswith("model.views.") else line for line in changes]
    if changes:
        raise MismatchError(
            f"{path} was made with other settings: {'; '.join(changes)}.",
            "Its counts have another meaning. Restore the settings. To change a view, give it a new name: "
            "it then starts empty, and what the view with the old name learned is dropped.",
        )
    drops_trust = bool(snapshot.reading.get("trust")) and not model.state.trust
    if not drops_trust and not differences(before.get("views"), model.state_settings()["views"]):
        return replace(snapshot.without_index(), statistics={**snapshot.statistics, "message": message})
    _, old = restore_model(snapshot)
    try:
        kept, new, dropped = grow(model.state, old.state)
    except ValueError as error:
        raise MismatchError(
            f"The model in {path} cannot take these views: {error}.",
            "Change the views, or learn the messages again in a new model.",
        ) from error
    if drops_trust:
        dropped.append("the trust of tokens")
    _log.info(
        "grown from %s; kept: %s; new and empty: %s; dropped: %s",
        path,
        *(", ".join(names) or "none" for names in (kept, new, dropped)),
    )
    frozen, digest = model.freeze(), snapshot.digest["all"]
    event: dict[str, object] = {
        "event": "grown",
        "kept": kept,
        "new": new,
        "dropped": dropped,
        "digest": digest,
    }
    return replace(
        snapshot,
        values={**snapshot.values, **frozen.values},
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics={"message": message, "model": model.state_settings()},
        reading=_reading(snapshot.reading, model.reading_settings(), new),
        settings=model_description(settings),
        lineage=[*snapshot.lineage, event],
        written_ms=SystemClock().wall_ms(),
        streamnb=__version__,
    )


def _check_classes(snapshot: Snapshot, path: Path) -> None:
    known: Any = snapshot.values.get("classes", [])
    if any(not isinstance(label, str) for label in known):
        kind, renamed = type(known[0]).__name__, " ".join(f"{label}=..." for label in known[:2])
        raise SettingsError(
            f"The classes in {path} are of the type {kind}, and labels of a stream are text.",
            f"Rename them to strings with `streamnb snapshot relabel {path} {renamed}`; add `--map-labels` "
            "if the messages keep such labels.",
        )


def _message_differences(before: Any, now: Mapping[str, Any]) -> list[str]:  # noqa: ANN401 - read from a file
    """Return what differs in how messages are read, except fields that only new or dropped views can read."""
    old: dict[str, Any] = dict(before)
    new: dict[str, Any] = dict(now)
    both = _fields(old) & _fields(new)
    for settings in (old, new):
        fields = settings.get("fields", {})
        shared = {kind: sorted(both.intersection(fields.get(kind, ()))) for kind in _KINDS}
        settings["fields"] = fields | shared
    return differences({"message": old}, {"message": new})


def _fields(message: Mapping[str, Any]) -> set[str]:
    return {name for kind in _KINDS for name in message.get("fields", {}).get(kind, ())}


def _reading(before: Mapping[str, Any], now: Mapping[str, Any], new: list[str]) -> dict[str, object]:
    """Return how the snapshot's views were read; a new view was not read otherwise before."""
    event_models = before.get("event_models", {})
    views = {
        name: now["event_models"][name] if name in new else event_models.get(name)
        for name in now["event_models"]
    }
    return {**before, "event_models": views}
