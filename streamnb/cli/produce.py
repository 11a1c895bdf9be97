"""`streamnb produce`: lines of a file into a topic, as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from streamnb.cli.options import (
    LinesArgument,
    SetOption,
)
from streamnb.errors import SettingsError

FLUSH_TIMEOUT_MS = 60_000


def produce(
    file: LinesArgument,
    topic: Annotated[str, typer.Option(help="Where to.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="For its table [kafka].")] = None,
    servers: Annotated[str | None, typer.Option("--bootstrap-servers", help="In place of a config.")] = None,
    create: Annotated[
        int,
        typer.Option(metavar="PARTITIONS", help="Make the topic, with so many partitions, if it is missing."),
    ] = 0,
    changes: SetOption = None,
) -> None:
    """Send lines into a Kafka topic, line n to partition n modulo how many there are."""
    from streamnb.config import client_settings, load_settings

    if (config is None) == (servers is None):
        raise SettingsError("Which broker?", "Give either --config or --bootstrap-servers.")
    brokers = (
        client_settings(load_settings(config, changes or ()))
        if config is not None
        else {"bootstrap_servers": servers}
    )
    sent, partitions = send(file, topic, brokers, create)
    print(f"{sent} records to {topic}, {partitions} partition{'s' if partitions > 1 else ''}")


def send(path: str, topic: str, client: Mapping[str, object], create: int = 0) -> tuple[int, int]:
    """Send line n to partition n modulo how many there are.

    Parameters
    ----------
    path : str
        ``-`` is standard input, ``.gz`` is unpacked.
    topic : str
    client : mapping
        The Kafka client's settings.
    create : int
        Make the topic with so many partitions, if it is missing; 0 does not.

    Returns
    -------
    (int, int)
        Records sent, and partitions.

    Raises
    ------
    StreamnbError
        The file cannot be read, or the topic cannot be written.
    """
    from streamnb.transports.jsonl import JsonlSource
    from streamnb.transports.kafka import KafkaSink, create_topics, describe_topics

    if create and topic not in describe_topics(client, [topic]):
        create_topics(client, {topic: create})
    source = JsonlSource(path)
    sink = KafkaSink(topic, client)
    sent = 0
    try:
        partitions = describe_topics(client, [topic])[topic]
        source.open({}, "earliest")
        while not source.finished():
            for records in source.poll(2000, 200):
                lines = list(zip(records.offsets, records.values, strict=True))
                for number in range(partitions):
                    values = [value for offset, value in lines if offset % partitions == number]
                    sink.publish(number, values, [None] * len(values), [()] * len(values))
                sent += len(lines)
        sink.flush(FLUSH_TIMEOUT_MS)
    finally:
        source.close()
        sink.close()
    return sent, partitions
