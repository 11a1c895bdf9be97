"""`streamnb produce`: send the lines of a file to a Kafka topic, unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from streamnb.cli.options import (
    CreateOption,
    LinesArgument,
    SetOption,
)
from streamnb.errors import SettingsError

FLUSH_TIMEOUT_MS = 60_000


def produce(
    file: LinesArgument,
    topic: Annotated[str, typer.Option(help="Topic to write to.")],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="Configuration file; its table [kafka] is used, [confluent] is not."
        ),
    ] = None,
    servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            metavar="HOST:PORT,...",
            help="Addresses of the brokers, if --config is not passed.",
        ),
    ] = None,
    create: CreateOption = 0,
    changes: SetOption = None,
) -> None:
    """Send the lines of a file to a Kafka topic, unchanged.

    Lines are spread over the partitions: line n goes to partition n modulo the number of partitions.
    """
    from streamnb.config import client_settings, load_settings

    if config is None and servers is None:
        raise SettingsError("No broker given.", "Pass --config or --bootstrap-servers.")
    if config is not None and servers is not None:
        raise SettingsError("Both --config and --bootstrap-servers name a broker.", "Pass only one of them.")
    brokers = (
        client_settings(load_settings(config, changes or ()))
        if config is not None
        else {"bootstrap_servers": servers}
    )
    sent, partitions = send(file, topic, brokers, create)
    print(f"{sent} records to {topic}, {partitions} partition{'s' if partitions > 1 else ''}")


def send(path: str, topic: str, client: Mapping[str, object], create: int = 0) -> tuple[int, int]:
    """Send the lines of a file to a topic: line n to partition n modulo the number of partitions.

    Parameters
    ----------
    path : str
        ``-`` is standard input; a ``.gz`` file is decompressed.
    topic : str
    client : mapping
        The Kafka client's settings.
    create : int
        Create the topic with this many partitions if it is missing; 0 does not create it.

    Returns
    -------
    (int, int)
        Number of records sent, and number of the topic's partitions.

    Raises
    ------
    StreamnbError
        The file cannot be read, or the topic does not exist or cannot be written.
    """
    from streamnb.transports.jsonl import JsonlSource
    from streamnb.transports.kafka import KafkaSink, create_topics, describe_topics

    source = JsonlSource(path)
    source.open({}, "earliest")  # a file that cannot be read needs no broker, and leaves no topic behind
    sent = 0
    with ExitStack() as opened:
        opened.callback(source.close)
        if create and topic not in describe_topics(client, [topic]):
            create_topics(client, {topic: create})
        sink = KafkaSink(topic, client)
        opened.callback(sink.close)
        partitions = describe_topics(client, [topic])[topic]
        while not source.finished():
            for records in source.poll(2000, 200):
                lines = list(zip(records.offsets, records.values, strict=True))
                for number in range(partitions):
                    values = [value for offset, value in lines if offset % partitions == number]
                    sink.publish(number, values, [None] * len(values), [()] * len(values))
                sent += len(lines)
        sink.flush(FLUSH_TIMEOUT_MS)
    return sent, partitions
