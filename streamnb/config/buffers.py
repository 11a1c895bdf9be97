"""How many bytes of records an engine holds at once outside its model: a sum that settings can state."""

from __future__ import annotations

from streamnb.base import DECOMPRESSED_BYTES_MAX, FETCHED_BYTES_MAX, POLL_BYTES_MAX
from streamnb.config.endpoints import (
    ConfluentInput,
    InputSettings,
    KafkaInput,
    LinesInput,
    OutputSettings,
    TopicOutput,
)
from streamnb.config.settings import Settings, client_settings


def buffer_bytes_max(settings: Settings) -> dict[str, int]:
    """Return how many bytes of records are held at most, by what holds them.

    The bytes are those of the records. Python's objects, the copies that a client makes, and a single record
    or batch that is larger than a limit come on top.

    Returns
    -------
    dict of str to int
        ``poll``: records that a poll returned. ``fetched``: records that the client has fetched ahead, as
        they were sent. ``decompressed``: the record batch that is being read; librdkafka has no limit for it.
        ``scores`` and ``dead letters``: records that wait for the brokers' answer. Files have only a poll.

    Examples
    --------
    >>> from streamnb.config.endpoints import KafkaInput, KafkaOutput
    >>> settings = Settings(source=KafkaInput(("mail",)), sink=KafkaOutput("scores"))
    >>> {name: size >> 20 for name, size in buffer_bytes_max(settings).items()}
    {'poll': 8, 'fetched': 16, 'decompressed': 64, 'scores': 16, 'dead letters': 0}
    """
    return {
        "poll": POLL_BYTES_MAX,
        "fetched": _fetched(settings, settings.source),
        "decompressed": DECOMPRESSED_BYTES_MAX if isinstance(settings.source, KafkaInput) else 0,
        "scores": _in_flight(settings.sink),
        "dead letters": _in_flight(settings.dead_letters.sink),
    }


def _fetched(settings: Settings, source: InputSettings | None) -> int:
    """Return the bytes that the source's client fetches ahead, by its own settings where these are given."""
    if source is None or isinstance(source, LinesInput):
        return 0
    client = client_settings(settings, source)
    if isinstance(source, ConfluentInput):
        queued = int(str(client.get("queued.max.messages.kbytes", FETCHED_BYTES_MAX // 2 >> 10))) << 10
        answer = max(queued, int(str(client.get("message.max.bytes", 0))))  # as librdkafka sets it itself
        return queued + int(str(client.get("fetch.max.bytes", answer)))
    return int(str(client.get("fetch_max_bytes", FETCHED_BYTES_MAX)))


def _in_flight(sink: OutputSettings | None) -> int:
    return sink.in_flight_bytes_max if isinstance(sink, TopicOutput) else 0
