"""The checks of `streamnb check`, in their order. They change nothing but create topics if asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from streamnb.base import Partition, Snapshot, positions
from streamnb.config.endpoints import (
    ConfluentInput,
    ConfluentOutput,
    KafkaInput,
    KafkaOutput,
    LinesInput,
    TopicOutput,
    TopicsInput,
)
from streamnb.config.engines import build_drift_watch, check_endpoints
from streamnb.config.models import build_decoder, build_model, slow_parts
from streamnb.config.newest import newest_records
from streamnb.config.settings import Settings, client_settings
from streamnb.engine import check_statistics, starting_point
from streamnb.errors import TransportError
from streamnb.storage import inspect_directory

Attempt = Callable[[], str]

BROKER_TIMEOUT_MS = 10_000  # a person waits for `check`; an engine waits longer


def checks(settings: Settings, create: int = 0) -> Iterator[tuple[str, Attempt]]:
    """Yield each check's name and attempt, which returns what it found or raises a `StreamnbError`.

    Parameters
    ----------
    settings : Settings
    create : int
        Number of partitions with which missing topics are created; 0 creates none.
    """
    yield "model", lambda: _model(settings)
    if settings.drift.detector:
        yield "drift", lambda: _drift(settings)
    yield "endpoints", lambda: _endpoints(settings)
    yield "snapshots", lambda: _snapshots(settings)
    for table, endpoint in (
        ("source", settings.source),
        ("sink", settings.sink),
        ("dead_letters.sink", settings.dead_letters.sink),
    ):
        if isinstance(endpoint, TopicsInput | TopicOutput):
            yield table, lambda endpoint=endpoint: _topics(settings, endpoint, create)  # type: ignore[misc]
        elif isinstance(endpoint, LinesInput):
            yield table, lambda endpoint=endpoint: _file(settings, endpoint)  # type: ignore[misc]


def _model(settings: Settings) -> str:
    model = build_model(settings)
    build_decoder(settings)
    views = ", ".join(view.name for view in model.state.views)
    slow = ", ".join(slow_parts(settings, model))
    return f"{views} under the {model.state.head_kind} head" + (f"; SLOW because of {slow}" if slow else "")


def _drift(settings: Settings) -> str:
    build_drift_watch(settings)
    return f"{settings.drift.detector} watches the mistakes"


def _endpoints(settings: Settings) -> str:
    check_endpoints(settings)
    return "source, sink and dead letters are set and do not overlap"


def _snapshots(settings: Settings) -> str:
    newest = inspect_directory(Path(settings.snapshots.directory))
    starting_point(newest, None, settings.engine.start)
    if newest is None:
        return f"{settings.snapshots.directory} is empty: the engine starts at {settings.engine.start}"
    model = build_model(settings)
    statistics = {"message": build_decoder(settings).state_settings(), "model": model.state_settings()}
    check_statistics(newest, statistics)
    model.restore(newest.values, newest.sections)
    resumes = f"the engine resumes from snapshot {newest.sequence} in {settings.snapshots.directory}"
    return f"{resumes}{_changed_partitions(settings, newest)}"


def _changed_partitions(settings: Settings, newest: Snapshot) -> str:
    """Return what differs between the partitions of a snapshot and those of `source.partitions`."""
    source = settings.source
    if not isinstance(source, TopicsInput) or source.partitions is None:
        return ""
    read = {Partition(topic, number) for topic in source.topics for number in source.partitions}
    found = newest.accounts
    kept = {one: found[one] for one in found if one.topic in source.topics and one not in read}
    new = ", ".join(map(str, sorted(read - found.keys())))
    start = "earliest" if settings.engine.start is None else settings.engine.start
    rests = f"; it keeps, but does not read: {positions(kept)}" if kept else ""
    return f"{rests}; it begins at {start} in {new}" if new else rests


def _topics(
    settings: Settings, endpoint: KafkaInput | ConfluentInput | KafkaOutput | ConfluentOutput, create: int
) -> str:
    if isinstance(endpoint, ConfluentInput | ConfluentOutput):
        from streamnb.transports.confluent import create_topics, describe_topics
    else:
        from streamnb.transports.kafka import create_topics, describe_topics

    wanted = endpoint.topics if isinstance(endpoint, TopicsInput) else (endpoint.topic,)
    client = client_settings(settings, endpoint)
    is_confluent = isinstance(endpoint, ConfluentInput | ConfluentOutput)
    timeout = "socket.connection.setup.timeout.ms" if is_confluent else "bootstrap_timeout_ms"
    client.setdefault(timeout, BROKER_TIMEOUT_MS)
    found = describe_topics(client, wanted)
    missing = [topic for topic in wanted if topic not in found]
    if missing and create:
        create_topics(client, dict.fromkeys(missing, create))
        return f"made {', '.join(missing)} ({create} partitions)"
    if missing:
        raise TransportError(
            f"There is no topic `{missing[0]}`.",
            "Correct its name, or pass `--create PARTITIONS` to create it.",
        )
    chosen = endpoint.partitions if isinstance(endpoint, TopicsInput) else None
    which = "" if chosen is None else f"partitions {', '.join(map(str, sorted(chosen)))} of "
    names = ", ".join(
        f"{topic} ({which}{count})" if which else f"{topic} ({count} partitions)"
        for topic, count in found.items()
    )
    return f"{names}; {newest_records(settings, endpoint)}" if isinstance(endpoint, TopicsInput) else names


def _file(settings: Settings, endpoint: LinesInput) -> str:
    if endpoint.path == "-":
        return "standard input, which is not read now"
    return f"{endpoint.path} can be read; {newest_records(settings, endpoint)}"
