"""`streamnb snapshot relabel`: rename or merge the classes of a snapshot."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from streamnb.cli.options import OutputOption, SnapshotArgument, visible
from streamnb.errors import SettingsError

if TYPE_CHECKING:
    from streamnb.base import Label, Snapshot

Names = Mapping["Label", "Label"]


def relabel(
    snapshot: SnapshotArgument,
    renamed: Annotated[
        list[str],
        typer.Argument(
            metavar="CLASS=LABEL",
            help="A class and its new label; if that is another class, the two are merged.",
        ),
    ],
    output: OutputOption,
    map_labels: Annotated[
        bool,
        typer.Option(
            "--map-labels",
            help="Also map the old labels to the new ones in the snapshot's `message.label_values`: for a "
            "stream that keeps the old labels.",
        ),
    ] = False,
) -> None:
    """Rename or merge classes, in a new snapshot.

    The counts are those of a model that learned the new labels from the start. The calibrated
    head sets the offset of a merged class so that, for a message without evidence, its probability is the sum
    of those of the old classes, and then continues to learn. The offsets of the input stay.
    """
    from streamnb.config import load_snapshot
    from streamnb.storage import write_snapshot

    held = load_snapshot(snapshot)
    result = relabelled(held, names_of(renamed, held), map_labels=map_labels)
    size = write_snapshot(output, result)
    classes = ", ".join(map(visible, _classes(result)))
    print(f"{output}: classes {classes}; {size} bytes, digest {result.digest['all']}")


def names_of(renamed: Sequence[str], snapshot: Snapshot) -> dict[Label, Label]:
    """Return the new label of each class, given ``class=label``; labels have the type of the classes.

    Raises
    ------
    SettingsError
        One has no ``=``, or a class is renamed twice.
    """
    classes = _classes(snapshot)
    known = {str(label): label for label in classes}
    names: dict[Label, Label] = {}
    for each in renamed:
        old, equals, new = each.partition("=")
        if not equals:
            raise SettingsError(
                f"{each!r} does not give a class a new label.", "Write CLASS=LABEL: billing=payments."
            )
        label = known.get(old, old)
        if label in names:
            raise SettingsError(f"The class {old!r} is renamed twice.", "Give it one new label.")
        number = new.isdecimal() and all(type(one) is int for one in classes)
        names[label] = known.get(new, int(new) if number else new)
    return names


def relabelled(snapshot: Snapshot, names: Names, *, map_labels: bool = False) -> Snapshot:
    """Return a snapshot whose classes are renamed and merged, with the offsets and lineage of the old one.

    Parameters
    ----------
    snapshot : Snapshot
    names : mapping of Label to Label
        The new label of each class to rename.
    map_labels : bool
        Whether messages may keep the old labels: they mean the new ones from now on.

    Raises
    ------
    SettingsError
        It has no such class, or a new label cannot be one.
    """
    from streamnb import __version__
    from streamnb.config import build_decoder, build_model, decode_settings, restore_model
    from streamnb.engine import SystemClock
    from streamnb.naive_bayes import ESTIMATOR, relabel

    _, old = restore_model(snapshot)
    tables = _relabelled_settings(snapshot.settings, names)
    if map_labels:
        message: dict[str, Any] = tables.setdefault("message", {})
        message["label_values"] = {**_as_sent(names), **message.get("label_values", {})}
    settings = decode_settings({k: v for k, v in tables.items() if k != ESTIMATOR}, "the snapshot")
    model = build_model(settings)
    try:
        relabel(model.state, old.state, names)
    except ValueError as error:
        raise SettingsError(
            f"The classes cannot be relabelled: {error}.",
            "Give each class its final label. To exchange two labels, run the command three times, with a "
            "temporary label.",
        ) from error
    frozen = model.freeze()
    statistics = dict(snapshot.statistics)
    if "message" in statistics:  # its map of labels names classes
        statistics["message"] = build_decoder(settings).state_settings()
    labels = {str(label): str(new) for label, new in names.items()}
    event: dict[str, object] = {"event": "relabelled", "labels": labels, "digest": snapshot.digest["all"]}
    return replace(
        snapshot,
        values={**snapshot.values, **frozen.values},
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics=statistics,
        reading=model.reading_settings(),
        settings=tables,
        lineage=[*snapshot.lineage, event],
        written_ms=SystemClock().wall_ms(),
        streamnb=__version__,
    )


def _classes(snapshot: Snapshot) -> list[Label]:
    classes: Any = snapshot.values.get("classes", [])
    return list(classes)


def _relabelled_settings(settings: Mapping[str, object], names: Names) -> dict[str, Any]:
    """Return the settings of a snapshot with the new labels wherever they name a class."""
    tables: dict[str, Any] = copy.deepcopy(dict(settings))
    for table in (tables.get("model", {}), tables, _parameters(tables)):
        if declared := table.get("classes"):
            table["classes"] = type(declared)(dict.fromkeys(names.get(label, label) for label in declared))
        if table.get("prior") and "p" in table["prior"]:
            table["prior"]["p"] = _summed(table["prior"]["p"], names)
    message, abstain = tables.get("message", {}), tables.get("output", {}).get("abstain", {})
    if "label_values" in message:
        values = message["label_values"]
        message["label_values"] = {value: names.get(label, label) for value, label in values.items()}
    if "between" in abstain:  # a class that others were merged with keeps its own bounds
        bounds = abstain["between"]
        abstain["between"] = {names.get(label, label): bounds[label] for label in bounds} | {
            label: bounds[label] for label in bounds if label not in names
        }
    return tables


def _parameters(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model that was saved from Python, or an empty table."""
    from streamnb.naive_bayes import ESTIMATOR

    found: dict[str, Any] = tables.get(ESTIMATOR, {}).get("parameters", {})
    return found


def _as_sent(names: Names) -> dict[str, Label]:
    """Return the new labels by the old ones as the JSON of a message has them."""
    return {
        label if isinstance(label, str) else orjson.dumps(label).decode(): new for label, new in names.items()
    }


def _summed(shares: Mapping[str, float], names: Names) -> dict[str, float]:
    """Return the shares of a fixed prior under the new labels; merged classes get the sum."""
    new = {str(label): str(to) for label, to in names.items()}
    total: dict[str, float] = {}
    for label, share in shares.items():
        total[new.get(label, label)] = total.get(new.get(label, label), 0.0) + share
    return total
