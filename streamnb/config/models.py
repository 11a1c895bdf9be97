"""Build the model and the decoder from settings; restore a model from a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from streamnb import __version__
from streamnb.base import INDEX_SECTIONS, Snapshot
from streamnb.config.renamed import without_fixed
from streamnb.config.settings import Settings, decode_settings
from streamnb.engine import SystemClock, check_statistics
from streamnb.errors import SettingsError, SnapshotError
from streamnb.naive_bayes import ESTIMATOR, NaiveBayes, memory, parameters, slowed_by
from streamnb.storage import SECTIONS_MAX, read_snapshot
from streamnb.wire import Decoder, MessageFields

_FIELDS: Mapping[str, Callable[[MessageFields], tuple[str, ...]]] = {
    "text": lambda fields: fields.text,
    "number": lambda fields: fields.number,
    "flag": lambda fields: fields.flag,
    "category": lambda fields: (*fields.category, *fields.flag),
}
"""The fields of the message that a reader may name, by what it reads."""

_LATER_SECTIONS = INDEX_SECTIONS | {"guard_sources"}
"""Sections that a snapshot may have although the model has learned nothing yet."""

_OF_THE_MODEL = ("model", "tokens", "views", "prior", "forgetting", "message", "output")


def model_description(settings: Settings) -> dict[str, object]:
    """Return the settings that build the model and read its messages, as a snapshot keeps them."""
    tables = msgspec.to_builtins(settings)
    return without_fixed({name: tables[name] for name in _OF_THE_MODEL})


def build_model(settings: Settings) -> NaiveBayes:
    """Return a model that has learned nothing.

    Raises
    ------
    SettingsError
        The settings contradict each other.
    """
    try:
        built = NaiveBayes(**parameters(settings))
    except ValueError as error:
        raise SettingsError(
            f"The model cannot be built: {error}.", "See `[model]` and `[[views]]`."
        ) from error
    needed = len(built.freeze().sections.keys() | _LATER_SECTIONS)
    if needed > SECTIONS_MAX:
        raise SettingsError(
            f"The {len(settings.views)} views of the model need {needed} sections of a snapshot, which has "
            f"at most {SECTIONS_MAX}.",
            'Let one view read several fields: reader = { kind = "numbers", fields = ["a", "b"] }.',
        )
    return built


def slow_parts(settings: Settings, built: NaiveBayes) -> list[str]:
    """Return which settings make scoring and learning slow, by their names; empty if nothing does."""
    state = built.state
    names = {"the prior": "`prior`", "explanations": "`output.explanation`"}
    parts = [names.get(part, part) for part in slowed_by(state.views, state.prior, state.explain)]
    return [*parts, *["`guard.learn_below`"] * (settings.guard.learn_below < 1)]


def build_decoder(settings: Settings) -> Decoder:
    """Return the decoder of messages.

    Raises
    ------
    SettingsError
        A view uses a field that `[message]` does not list.
    """
    fields = settings.message
    for view in settings.views:
        if view.reads == "terms":
            raise SettingsError(
                f"View `{view.name}` has the reader `terms`, which works only from Python.",
                'Let it read the text: reader = { kind = "words" }.',
            )
        if view.reads != "text" and not getattr(view.reader, "fields", None):
            kind = msgspec.to_builtins(view.reader)["kind"]
            raise SettingsError(
                f"View `{view.name}` does not name the fields it reads.",
                f'Name them: reader = {{ kind = "{kind}", fields = ["a", "b"] }}. '
                "A model that was saved from Python and reads every field by its type works only in Python: "
                "read it with `streamnb.load`.",
            )
        read = _FIELDS[view.reads](fields)
        for field in view.reader.named_fields:
            if field not in read:
                table, listed = f"message.{view.reads}", ", ".join(f'"{name}"' for name in read)
                instead = (
                    f"Let the reader read the fields of `{table}`: fields = [{listed}]. Or add"
                    if read
                    else "Add"
                )
                raise SettingsError(
                    f"View `{view.name}` uses the field `{field}`, which `{table}` does not list.",
                    f"{instead} `{field}` to `{table}`.",
                )
    return Decoder(fields, timed=settings.forgetting.half_life_s is not None)


def restore_model(snapshot: Snapshot) -> tuple[Settings, NaiveBayes]:
    """Return the settings and the model of a snapshot, without a configuration file.

    Raises
    ------
    SnapshotError
        This installation reads texts otherwise than the one that learned, or the state is damaged.
    SettingsError
        The settings in it are not ones this version knows.
    """
    tables = {name: table for name, table in snapshot.settings.items() if name != ESTIMATOR}
    settings = decode_settings(tables, "the snapshot")
    built = build_model(settings)
    statistics: dict[str, object] = {"model": built.state_settings()}
    if "message" in snapshot.statistics:  # a model that was saved from Python has read no records
        statistics["message"] = build_decoder(settings).state_settings()
    check_statistics(snapshot, statistics)
    built.restore(snapshot.values, snapshot.sections)
    return settings, built


def load_snapshot(path: Path) -> Snapshot:
    """Return a snapshot from a file, verified, to restore a model from.

    Raises
    ------
    SnapshotError
        It is torn, damaged, foreign or of another version.
    StorageError
        It cannot be read.
    """
    return read_snapshot(path, memory)


def verify_snapshot(path: Path) -> str:
    """Check every byte of a snapshot, restore its state and compute its digest again.

    Where the file holds a hash table, every token is looked up in it as well.

    Returns
    -------
    str
        The digest.

    Raises
    ------
    SnapshotError
        The file is damaged, or its state has another digest than it records.
    """
    held = load_snapshot(path)
    _, built = restore_model(held)
    built.state.counts.check_index()
    digest = built.digest()
    if digest != held.digest:
        raise SnapshotError(
            f"{path} records the digest {held.digest['all']}, but its state has the digest {digest['all']}.",
            "Use another snapshot; this state is not the one that was written.",
        )
    return digest["all"]


def snapshot_of(settings: Settings, built: NaiveBayes) -> Snapshot:
    """Return a model's state without offsets, as `streamnb learn` writes it."""
    frozen = built.freeze()
    return Snapshot(
        values=frozen.values,
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics={"message": build_decoder(settings).state_settings(), "model": built.state_settings()},
        reading=built.reading_settings(),
        settings=model_description(settings),
        written_ms=SystemClock().wall_ms(),
        streamnb=__version__,
    )
