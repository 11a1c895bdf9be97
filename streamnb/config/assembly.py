"""From settings to the parts they describe: model, decoder, source, sinks, engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from streamnb import __version__
from streamnb.base.protocols import Sink, Source, Transactions
from streamnb.base.snapshot import Snapshot
from streamnb.config.endpoints import (
    ConfluentInput,
    ConfluentOutput,
    InputSettings,
    KafkaInput,
    KafkaOutput,
    LinesInput,
    LinesOutput,
    OutputSettings,
)
from streamnb.config.settings import Settings, client, decode
from streamnb.engine.clock import SystemClock
from streamnb.engine.dead_letters import DeadLetters
from streamnb.engine.engine import Engine
from streamnb.engine.guard import Guard
from streamnb.engine.metrics import Metrics
from streamnb.engine.recovery import check_statistics
from streamnb.errors import SettingsError, SnapshotError
from streamnb.evaluation import DETECTORS, DriftWatch
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.features.blocks import Categories, Flags, Numbers
from streamnb.naive_bayes.features.tokenizer import Number, Terms
from streamnb.naive_bayes.model.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import fields_of, reads_text
from streamnb.storage import directory as snapshots
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.jsonl import JsonlDeadLetters, JsonlSink, JsonlSource
from streamnb.wire.message import Decoder

if TYPE_CHECKING:
    from streamnb.transports.kafka.transactions import KafkaTransactions

_OF_THE_MODEL = ("model", "tokens", "views", "prior", "forgetting", "message", "labels", "output")


def description(settings: Settings) -> dict[str, object]:
    """The settings that build the model and read its messages, as a snapshot keeps them."""
    return {name: value for name, value in msgspec.to_builtins(settings).items() if name in _OF_THE_MODEL}


def model(settings: Settings) -> NaiveBayes:
    """A model that has learned nothing.

    Raises
    ------
    SettingsError
        The settings contradict each other.
    """
    try:
        return NaiveBayes(
            settings.views,
            prior=settings.prior,
            head=settings.model.head,
            classes=settings.model.classes,
            classes_max=settings.model.classes_max,
            max_tokens=settings.model.max_tokens,
            tokenizer=settings.tokens,
            raw=settings.output.raw_posterior,
            explain=settings.output.explanation,
            half_life_s=settings.forgetting.half_life_s,
            half_life_messages=settings.forgetting.half_life_messages,
            time_skew_max_s=settings.forgetting.time_skew_max_s,
        )
    except ValueError as error:
        raise SettingsError(
            f"The model cannot be built: {error}.", "See `[model]` and `[[views]]`."
        ) from error


def decoder(settings: Settings) -> Decoder:
    """What reads messages.

    Raises
    ------
    SettingsError
        A view looks at a field that `[message]` does not read.
    """
    fields = settings.message
    for view in settings.views:
        if isinstance(view.reader, Terms):
            raise SettingsError(
                f"View `{view.name}` reads terms that were counted already, and no message carries those.",
                'Let it read the text: reader = { kind = "words" }.',
            )
        if isinstance(view.reader, Categories | Flags | Numbers) and not view.reader.fields:
            raise SettingsError(
                f"View `{view.name}` does not name the fields it reads.",
                'Name them: reader = { kind = "numbers", fields = ["amount"] }.',
            )
        if reads_text(view.reader):
            table, read = "text", fields.text
        elif isinstance(view.reader, Number | Numbers):
            table, read = "number", fields.number
        elif isinstance(view.reader, Flags):
            table, read = "flag", fields.flag
        else:
            table, read = "category", (*fields.category, *fields.flag)
        for field in fields_of(view.reader):
            if field not in read:
                raise SettingsError(
                    f"View `{view.name}` looks at the field `{field}`, absent from `message.{table}`.",
                    f"Add it to `message.{table}`.",
                )
    return Decoder(fields, settings.labels, timed=settings.forgetting.half_life_s is not None)


def restored(snapshot: Snapshot) -> tuple[Settings, NaiveBayes]:
    """The settings and the model of a snapshot, without a configuration file.

    Raises
    ------
    SnapshotError
        This installation reads texts otherwise than the one that learned, or the state is damaged.
    SettingsError
        The settings in it are not ones this version knows.
    """
    settings = decode(snapshot.settings, "the snapshot")
    built = model(settings)
    statistics = {"message": decoder(settings).statistics(), "model": built.statistics()}
    check_statistics(snapshot, statistics)
    built.restore(snapshot.values, snapshot.sections)
    return settings, built


def snapshot_at(path: Path) -> Snapshot:
    """A snapshot file, verified, to restore a model from.

    Raises
    ------
    SnapshotError
        It is torn, damaged, foreign or of another version.
    StorageError
        It cannot be read.
    """
    return snapshots.read(path, _kernel.memory)


def verify(path: Path) -> str:
    """Check every byte of a snapshot, restore its state and compute its digest again.

    Where the file holds a hash table, every token is looked up in it as well.

    Returns
    -------
    str
        The digest.

    Raises
    ------
    SnapshotError
        The file is damaged, or the digest is another one than it says.
    """
    held = snapshot_at(path)
    _, built = restored(held)
    if _kernel.compiled and isinstance(built.counts, _kernel.CountStore):
        built.counts.check_index()
    digest = built.digest()
    if digest != held.digest:
        raise SnapshotError(
            f"{path} says its digest is {held.digest['all']}, and its state's is {digest['all']}.",
            "Use another snapshot; this state is not the one that was written.",
        )
    return digest["all"]


def snapshot_of(settings: Settings, built: NaiveBayes) -> Snapshot:
    """A model's state without offsets, as `streamnb learn` writes it."""
    frozen = built.freeze()
    return Snapshot(
        values=frozen.values,
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics={"message": decoder(settings).statistics(), "model": built.statistics()},
        reading=built.reading(),
        settings=description(settings),
        written_ms=SystemClock().wall_ms(),
        streamnb=__version__,
    )


def guard(settings: Settings) -> Guard | None:
    """What may not be learned, where that is set.

    Raises
    ------
    SettingsError
        It looks at a field that `[message]` does not read.
    """
    chosen = settings.guard
    if not chosen.source and chosen.learn_below == 1:
        return None
    if chosen.source and chosen.source not in settings.message.category:
        raise SettingsError(
            f"The guard looks at the field `{chosen.source}`, absent from `message.category`.",
            "Add it there; it takes part in scoring only where a view reads it.",
        )
    return Guard(chosen)


def drift(settings: Settings) -> DriftWatch | None:
    """What watches the mistakes, where that is set.

    Raises
    ------
    SettingsError
        There is no such detector, or it has no such parameters.
    """
    chosen = settings.drift
    if chosen.parameters and not chosen.detector:
        raise SettingsError(
            "`drift.parameters` are set, and `drift.detector` is not.", f"There are {', '.join(DETECTORS)}."
        )
    return DriftWatch(chosen) if chosen.detector else None


def source(settings: Settings, room: InputSettings) -> Source:
    """Where records come from."""
    if isinstance(room, LinesInput):
        check_lines(settings)
        return JsonlSource(room.path, room.line_bytes_max)
    if isinstance(room, ConfluentInput):
        from streamnb.transports.confluent.source import ConfluentSource

        return ConfluentSource(room.topics, client(settings, room), group=room.group)
    from streamnb.transports.kafka.source import KafkaSource

    bytes_max = room.decompressed_bytes_max
    return KafkaSource(
        room.topics, client(settings, room), group=room.group, decompressed_bytes_max=bytes_max
    )


def check_lines(settings: Settings) -> None:
    """Whether lines of a file can be learned: they have no timestamps.

    Raises
    ------
    SettingsError
        The model forgets by time.
    """
    if settings.forgetting.half_life_s is not None:
        raise SettingsError(
            "`forgetting.half_life_s` goes by the records' timestamps, and lines of a file have none.",
            "Set `forgetting.half_life_messages` instead.",
        )


def transactions(
    settings: Settings, came: InputSettings, goes: OutputSettings, aside: OutputSettings
) -> KafkaTransactions | None:
    """What makes scores exactly once, where that is set.

    Raises
    ------
    SettingsError
        A sink has no transactions, or no group is named to commit offsets under.
    """
    if settings.engine.scores != "exactly_once":
        return None
    rooms = [room for room in (came, goes, aside) if isinstance(room, KafkaInput | KafkaOutput)]
    if len(rooms) < 3 or any(client(settings, room) != client(settings, rooms[0]) for room in rooms):
        raise SettingsError(
            '`engine.scores = "exactly_once"` needs source, sink and dead letters in one Kafka cluster.',
            'Set kind = "kafka" and the same client settings for all three, or "at_least_once".',
        )
    assert isinstance(came, KafkaInput)
    if came.group is None:
        raise SettingsError(
            '`engine.scores = "exactly_once"` commits offsets, and `source.group` does not say under whom.',
            "Name a group that belongs to this engine alone.",
        )
    assert isinstance(goes, KafkaOutput)
    from streamnb.transports.kafka.transactions import KafkaTransactions

    return KafkaTransactions(client(settings, came), came.group, delivery_timeout_ms=goes.delivery_timeout_ms)


def sink(
    settings: Settings,
    room: OutputSettings,
    within: KafkaTransactions | None = None,
    *,
    dead_letters: bool = False,
) -> Sink:
    """Where records go, in whose transactions if any."""
    if isinstance(room, LinesOutput):
        return JsonlDeadLetters(room.path) if dead_letters else JsonlSink(room.path)
    brokers = client(settings, room)
    limits = {
        "in_flight_max": room.in_flight_max,
        "in_flight_bytes_max": room.in_flight_bytes_max,
        "delivery_timeout_ms": room.delivery_timeout_ms,
    }
    if isinstance(room, ConfluentOutput):
        from streamnb.transports.confluent.source import ConfluentSink

        return ConfluentSink(room.topic, brokers, **limits)
    from streamnb.transports.kafka.source import KafkaSink

    return KafkaSink(room.topic, brokers, **limits, transactions=within)


def check_rooms(settings: Settings) -> tuple[InputSettings, OutputSettings, OutputSettings]:
    """Source, sink and dead-letter sink, all set and none the same.

    Raises
    ------
    SettingsError
        One is missing, or something that is written would be read again.
    """
    rooms = (settings.source, settings.sink, settings.dead_letters.sink)
    for room, table in zip(rooms, ("source", "sink", "dead_letters.sink"), strict=True):
        if room is None:
            raise SettingsError(f"`[{table}]` is not set.", "See configs/streamnb.toml for what it may be.")
    came, goes, aside = rooms
    assert came is not None
    assert goes is not None
    assert aside is not None
    read = {came.path} if isinstance(came, LinesInput) else set(came.topics)
    written = [room.path if isinstance(room, LinesOutput) else room.topic for room in (goes, aside)]
    again = read & set(written) - {"-"}
    if again or written[0] == written[1]:
        name = again.pop() if again else written[0]
        raise SettingsError(
            f"`{name}` stands for two of source, sink and dead letters.",
            "Each needs a topic or file of its own, or what is written would be read or mixed up.",
        )
    return came, goes, aside


def engine(settings: Settings, *, metrics: Metrics, until_end: bool = False, rebuild: bool = False) -> Engine:
    """The whole engine; it holds the snapshot directory's lock until it is closed.

    With `rebuild` it moves damaged snapshots aside and begins anew, which the lineage says.

    Raises
    ------
    StreamnbError
        Something it needs cannot be had; nothing is held.
    """
    came, goes, aside = check_rooms(settings)
    built, reads, guards = model(settings), decoder(settings), guard(settings)
    watch = drift(settings)
    kept = settings.snapshots
    store = SnapshotDirectory(Path(kept.directory), kept.keep, kept.keep_hours, _kernel.memory)
    opened: list[Source | Sink | Transactions] = []
    lineage: list[dict[str, object]] = []
    try:
        if rebuild and (damaged := store.set_aside_all()):
            lineage.append({"event": "rebuilt", "set_aside": damaged})
        opened.append(came_from := source(settings, came))
        within = transactions(settings, came, goes, aside)
        if within is not None:
            opened.append(within)
        opened.append(goes_to := sink(settings, goes, within))
        opened.append(put_aside := sink(settings, aside, within, dead_letters=True))
    except BaseException:
        for part in opened:
            part.close()
        store.close()
        raise
    clock = SystemClock()
    return Engine(
        name=settings.model.name,
        classifier=built,
        decoder=reads,
        source=came_from,
        sink=goes_to,
        dead_letters=DeadLetters(put_aside, clock, settings.dead_letters),
        store=store,
        settings=settings.engine,
        snapshots=settings.snapshots,
        output=settings.output,
        clock=clock,
        metrics=metrics,
        evaluation=settings.evaluation,
        drift=watch,
        description=description(settings),
        version=__version__,
        transactions=within,
        guard=guards,
        until_end=until_end,
        lineage=lineage,
    )
