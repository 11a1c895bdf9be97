"""Build the engine and its parts from settings: source, sinks, transactions, guard."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import structs

from streamnb import __version__
from streamnb.base import Clock, Sink, SnapshotStore, Source, Transactions
from streamnb.config.buffers import memory_bytes_max, records_per_poll
from streamnb.config.endpoints import (
    ConfluentInput,
    ConfluentOutput,
    InputSettings,
    LinesInput,
    LinesOutput,
    OutputSettings,
    TopicOutput,
    TopicsInput,
)
from streamnb.config.settings import Settings, client_settings
from streamnb.engine import (
    DeadLetters,
    Delivery,
    Engine,
    EngineSettings,
    Guard,
    Lag,
    Metrics,
    Model,
    Pace,
    Processing,
    Progress,
    Recovery,
    Snapshots,
    SnapshotSettings,
    SnapshotWriter,
    SystemClock,
)
from streamnb.errors import SettingsError
from streamnb.evaluation import DriftWatch, LiveEvaluation
from streamnb.naive_bayes import compiled, memory
from streamnb.storage import SnapshotDirectory, place_of
from streamnb.transports.jsonl import JsonlDeadLetters, JsonlSink, JsonlSource
from streamnb.wire import Output

if TYPE_CHECKING:
    from streamnb.transports.confluent import ConfluentTransactions
    from streamnb.transports.kafka import KafkaTransactions
from streamnb.config.models import build_decoder, build_model, model_description, slow_parts

_log = logging.getLogger("streamnb.engine")


def build_guard(settings: Settings) -> Guard | None:
    """Return the guard, which decides what may not be learned, or ``None`` if none is set.

    Raises
    ------
    SettingsError
        It uses a field that `message.category` does not list.
    """
    chosen = settings.guard
    if not chosen.source and chosen.learn_below == 1:
        return None
    if chosen.source and chosen.source not in settings.message.category:
        raise SettingsError(
            f"The guard uses the field `{chosen.source}`, which `message.category` does not list.",
            "Add it to `message.category`. The model does not use it unless a view reads it too.",
        )
    return Guard(chosen)


def build_drift_watch(settings: Settings) -> DriftWatch | None:
    """Return the drift watch, which watches the mistakes, or ``None`` if none is set.

    Raises
    ------
    SettingsError
        There is no such detector.
    """
    detector = settings.drift.detector
    return DriftWatch(detector) if detector else None


def build_source(settings: Settings, endpoint: InputSettings) -> Source:
    """Return the source that an endpoint describes."""
    if isinstance(endpoint, LinesInput):
        check_lines(settings)
        return JsonlSource(endpoint.path)
    if isinstance(endpoint, ConfluentInput):
        from streamnb.transports.confluent import ConfluentSource

        source: Callable[..., Source] = ConfluentSource
    else:
        from streamnb.transports.kafka import KafkaSource

        source = KafkaSource
    return source(
        endpoint.topics,
        client_settings(settings, endpoint),
        group=endpoint.group,
        partitions=endpoint.partitions,
    )


def check_lines(settings: Settings) -> None:
    """Check that lines of a file, which have no timestamps, can be learned.

    Raises
    ------
    SettingsError
        The model forgets by time.
    """
    if settings.forgetting.half_life_s is not None:
        raise SettingsError(
            "`forgetting.half_life_s` needs the records' timestamps, and lines of a file have none.",
            "Set `forgetting.half_life_messages` instead.",
        )


def build_transactions(
    settings: Settings, came: InputSettings, goes: OutputSettings, aside: OutputSettings
) -> KafkaTransactions | ConfluentTransactions | None:
    """Return the transactions for exactly-once scores, or ``None`` if scores are at least once.

    Raises
    ------
    SettingsError
        A sink has no transactions, or no group is named to commit offsets under.
    """
    if settings.engine.scores != "exactly_once":
        return None
    topics = [one for one in (came, goes, aside) if isinstance(one, TopicsInput | TopicOutput)]
    clients = {isinstance(one, ConfluentInput | ConfluentOutput) for one in topics}
    if (
        len(topics) < 3
        or len(clients) > 1
        or any(client_settings(settings, one) != client_settings(settings, topics[0]) for one in topics)
    ):
        raise SettingsError(
            '`engine.scores = "exactly_once"` needs source, sink and dead letters in one Kafka cluster.',
            'Set the same kind, "kafka" or "confluent", and the same client settings for all three, or set '
            'scores = "at_least_once".',
        )
    assert isinstance(came, TopicsInput)
    if came.group is None:
        raise SettingsError(
            '`engine.scores = "exactly_once"` needs `source.group`, which is not set.',
            "Name a group that belongs to this engine alone.",
        )
    assert isinstance(goes, TopicOutput)
    assert isinstance(aside, TopicOutput)
    client, timeout_ms = client_settings(settings, came), goes.delivery_timeout_ms
    if isinstance(came, ConfluentInput):
        from streamnb.transports.confluent import ConfluentTransactions

        in_flight = goes.in_flight_bytes_max + aside.in_flight_bytes_max
        return ConfluentTransactions(
            client, came.group, delivery_timeout_ms=timeout_ms, in_flight_bytes_max=in_flight
        )
    from streamnb.transports.kafka import KafkaTransactions

    return KafkaTransactions(client, came.group, delivery_timeout_ms=timeout_ms)


def build_sink(
    settings: Settings,
    endpoint: OutputSettings,
    within: KafkaTransactions | ConfluentTransactions | None = None,
    *,
    dead_letters: bool = False,
) -> Sink:
    """Return the sink that an endpoint describes, which publishes within these transactions, if any."""
    if isinstance(endpoint, LinesOutput):
        return JsonlDeadLetters(endpoint.path) if dead_letters else JsonlSink(endpoint.path)
    brokers = client_settings(settings, endpoint)
    limits = {
        "in_flight_bytes_max": endpoint.in_flight_bytes_max,
        "delivery_timeout_ms": endpoint.delivery_timeout_ms,
    }
    if isinstance(endpoint, ConfluentOutput):
        from streamnb.transports.confluent import ConfluentSink

        # `build_transactions` made `within` for the client of all endpoints.
        own = cast("ConfluentTransactions | None", within)
        return ConfluentSink(endpoint.topic, brokers, **limits, transactions=own)
    from streamnb.transports.kafka import KafkaSink

    kafkas = cast("KafkaTransactions | None", within)
    return KafkaSink(endpoint.topic, brokers, **limits, transactions=kafkas)


def check_endpoints(settings: Settings) -> tuple[InputSettings, OutputSettings, OutputSettings]:
    """Return source, sink and dead-letter sink, after checking that all are set and no two are the same.

    Raises
    ------
    SettingsError
        One is missing, or something that is written would be read again.
    """
    endpoints = (settings.source, settings.sink, settings.dead_letters.sink)
    for endpoint, table in zip(endpoints, ("source", "sink", "dead_letters.sink"), strict=True):
        if endpoint is None:
            hint = (
                f'Set `[{table}]` with its kind, "kafka", "confluent" or "jsonl", and what that kind needs.'
            )
            raise SettingsError(f"`[{table}]` is not set.", hint)
    came, goes, aside = endpoints
    assert came is not None
    assert goes is not None
    assert aside is not None
    read = {place_of(came.path, 0)} if isinstance(came, LinesInput) else set(came.topics)
    written = dict(map(_name_and_place, (goes, aside)))
    places = list(written.values())
    again = [name for name, place in written.items() if place is not None and place in read]
    if len(written) == 1 or (places[0] is not None and places[0] == places[1]):
        again += written
    if again:
        name = again[0]
        raise SettingsError(
            f"`{name}` is used for more than one of source, sink and dead letters.",
            "Give each its own topic or file; otherwise output would be read as input or mixed up.",
        )
    return came, goes, aside


def _name_and_place(endpoint: OutputSettings) -> tuple[str, str | tuple[int, int] | None]:
    """Return the path or topic that is written, and what all its names have in common."""
    if isinstance(endpoint, LinesOutput):
        return endpoint.path, place_of(endpoint.path, 1)
    return endpoint.topic, endpoint.topic


def build_engine(
    settings: Settings, *, metrics: Metrics, until_end: bool = False, rebuild: bool = False
) -> Engine:
    """Return the whole engine, which holds the snapshot directory's lock until it is closed.

    With `rebuild` it moves damaged snapshots aside and starts over, which the lineage records.

    Raises
    ------
    StreamnbError
        Something it needs cannot be had; nothing is held.
    """
    came, goes, aside = check_endpoints(settings)
    built, reads, guards = build_model(settings), build_decoder(settings), build_guard(settings)
    watch = build_drift_watch(settings)
    slow = slow_parts(settings, built)
    if slow and compiled:  # without the kernel everything is slow, and the command has logged that
        _log.warning("the model is up to 100 times slower than compiled code, because of %s", ", ".join(slow))
    metrics.note_slow(slow)
    memory_parts = memory_bytes_max(settings)
    _log.info(
        "memory besides the interpreter: up to %d MiB (%s)",
        sum(memory_parts.values()) >> 20,
        ", ".join(f"{name} {size >> 20}" for name, size in memory_parts.items() if size),
    )
    kept = settings.snapshots
    store = SnapshotDirectory(Path(kept.directory), kept.keep, kept.keep_hours, memory)
    opened: list[Source | Sink | Transactions] = []
    lineage: list[dict[str, object]] = []
    try:
        if rebuild and (damaged := store.set_aside_all()):
            lineage.append({"event": "rebuilt", "set_aside": damaged})
        opened.append(came_from := build_source(settings, came))
        within = build_transactions(settings, came, goes, aside)
        if within is not None:
            opened.append(within)
        opened.append(goes_to := build_sink(settings, goes, within))
        opened.append(put_aside := build_sink(settings, aside, within, dead_letters=True))
    except BaseException:
        for part in opened:
            part.close()
        store.close()
        raise
    clock = SystemClock()
    return assemble(
        model=Model(settings.model.name, built, reads, guards, model_description(settings)),
        source=came_from,
        sink=goes_to,
        dead_letters=DeadLetters(put_aside, clock, settings.dead_letters),
        store=store,
        settings=structs.replace(settings.engine, batch_records_max=records_per_poll(settings)),
        snapshots=settings.snapshots,
        output=settings.output,
        clock=clock,
        metrics=metrics,
        evaluation=LiveEvaluation(drift=watch),
        pace=Pace(flush_timeout_ms=flush_timeout_ms(goes, aside)),
        transactions=within,
        lineage=lineage,
        until_end=until_end,
    )


def assemble(
    *,
    model: Model,
    source: Source,
    sink: Sink,
    dead_letters: DeadLetters,
    store: SnapshotStore,
    settings: EngineSettings,
    snapshots: SnapshotSettings,
    output: Output,
    clock: Clock,
    metrics: Metrics,
    evaluation: LiveEvaluation,
    pace: Pace | None = None,
    transactions: Transactions | None = None,
    lineage: Sequence[dict[str, object]] = (),
    until_end: bool = False,
) -> Engine:
    """Return an engine over these parts; all that it makes itself is what they share."""
    progress, pace = Progress(list(lineage)), pace or Pace()
    delivery = Delivery(
        sink=sink,
        dead_letters=dead_letters,
        progress=progress,
        pace=pace,
        clock=clock,
        transactions=transactions,
    )
    lag = Lag(source, clock, metrics)
    taken = Snapshots(
        model=model,
        progress=progress,
        source=source,
        lag=lag,
        delivery=delivery,
        writer=SnapshotWriter(store, snapshots, pace, clock, metrics),
        evaluation=evaluation,
        clock=clock,
        metrics=metrics,
        version=__version__,
    )
    return Engine(
        source=source,
        recovery=Recovery(
            model=model,
            progress=progress,
            source=source,
            delivery=delivery,
            snapshots=taken,
            settings=settings,
        ),
        processing=Processing(
            model=model,
            delivery=delivery,
            output=output,
            evaluation=evaluation,
            progress=progress,
            clock=clock,
            metrics=metrics,
        ),
        delivery=delivery,
        snapshots=taken,
        lag=lag,
        progress=progress,
        settings=settings,
        pace=pace,
        clock=clock,
        metrics=metrics,
        until_end=until_end,
    )


def flush_timeout_ms(*outputs: OutputSettings) -> int:
    """Return how long a snapshot waits for the sinks: at least as long as one of them may take to deliver."""
    deliveries = [sink.delivery_timeout_ms for sink in outputs if isinstance(sink, TopicOutput)]
    return max(Pace().flush_timeout_ms, *deliveries, 0)
