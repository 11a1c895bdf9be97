"""How many bytes an engine holds at once, in its model and outside it: sums that settings can state."""

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
from streamnb.wire import PARSED_BYTES

PARSED_TIMES = 30  # the worst JSON, many small objects, as Python objects in place of bytes
SCORES_MAX = 1 << 19  # messages times classes of a batch
SCORE_BYTES = (
    64  # per message and class: four tables of float64, and what is made of them while they are encoded
)


def records_per_poll(settings: Settings) -> int:
    """Return `engine.batch_records_max`, or fewer records if their scores of all classes would take too much
    memory.

    Examples
    --------
    >>> from streamnb.config.settings import ModelSettings
    >>> records_per_poll(Settings()), records_per_poll(Settings(model=ModelSettings(classes_max=1000)))
    (2000, 524)
    """
    classes = settings.model.classes_max or SCORES_MAX
    return max(1, min(settings.engine.batch_records_max, SCORES_MAX // classes))


def memory_bytes_max(settings: Settings) -> dict[str, int]:
    """Return how much memory each part of an engine takes at most, in bytes, besides the interpreter.

    Returns
    -------
    dict of str to int
        ``counts``: those of the model, with what a snapshot of them needs. ``parsed``: the part of a poll
        that is being read. ``tables``: the scores of a batch. The others are those of `buffer_bytes_max`.

    Examples
    --------
    >>> from streamnb.config.endpoints import LinesInput, LinesOutput
    >>> settings = Settings(source=LinesInput("mail.jsonl"), sink=LinesOutput("scores.jsonl"))
    >>> {name: size >> 20 for name, size in memory_bytes_max(settings).items() if size}
    {'counts': 256, 'parsed': 60, 'tables': 3, 'poll': 8}
    """
    rows, classes = records_per_poll(settings), settings.model.classes_max or 1
    return {
        "counts": settings.model.bytes_max or 0,
        "parsed": PARSED_TIMES * PARSED_BYTES,
        "tables": rows * classes * SCORE_BYTES,
        **buffer_bytes_max(settings),
    }


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
    {'poll': 8, 'fetched': 8, 'decompressed': 32, 'scores': 8, 'dead letters': 0}
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
