"""Where records come from and where they go, as settings: topics through either Kafka client, or files."""

from __future__ import annotations

import msgspec

from streamnb.base import IN_FLIGHT_BYTES_MAX, checked_partitions
from streamnb.errors import SettingsError

DELIVERY_TIMEOUT_MS_MAX = 86_400_000  # a day

Client = dict[str, object]
"""Settings of a Kafka client, under the client's own names."""


class TopicsInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Topics to read.

    Parameters
    ----------
    topics : tuple of str
    group : str, optional
        Under which offsets are committed for lag tools; they are never read back.
    partitions : tuple of int, optional
        The numbers of the partitions to read of each topic, so that other processes can read the others. By
        default all, also those that are added later.
    client : dict
        The client's own settings where this endpoint differs, over those of the table ``[kafka]`` or
        ``[confluent]``.
    """

    topics: tuple[str, ...]
    group: str | None = None
    partitions: tuple[int, ...] | None = None
    client: Client = {}

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a list of partitions that names none, one twice, or one below 0."""
        try:
            checked_partitions(self.partitions)
        except SettingsError as error:
            raise ValueError(error.what.rstrip(".")) from error


class KafkaInput(TopicsInput, frozen=True, tag="kafka"):
    """Topics to read through kafka-python."""


class ConfluentInput(TopicsInput, frozen=True, tag="confluent"):
    """Topics to read through librdkafka."""


class LinesInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="jsonl"):
    """A file of JSON lines; ``-`` is standard input, ``.gz`` is unpacked."""

    path: str


class TopicOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A topic to write, each record to the partition number it came from.

    Parameters
    ----------
    topic : str
    in_flight_bytes_max : int
        Bytes of values and keys that may wait for the broker's answer.
    delivery_timeout_ms : int
    client : dict
        As of `TopicsInput`.
    """

    topic: str
    in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX
    delivery_timeout_ms: int = 120_000
    client: Client = {}

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit below 1 or a time that no client can wait."""
        if self.in_flight_bytes_max < 1 or not 1 <= self.delivery_timeout_ms <= DELIVERY_TIMEOUT_MS_MAX:
            raise ValueError(
                "`in_flight_bytes_max` must be at least 1 and `delivery_timeout_ms` from 1 to "
                f"{DELIVERY_TIMEOUT_MS_MAX}"
            )


class KafkaOutput(TopicOutput, frozen=True, tag="kafka"):
    """A topic to write through kafka-python."""


class ConfluentOutput(TopicOutput, frozen=True, tag="confluent"):
    """A topic to write through librdkafka."""


class LinesOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="jsonl"):
    """A file to append JSON lines to; ``-`` is standard output."""

    path: str


InputSettings = KafkaInput | ConfluentInput | LinesInput
OutputSettings = KafkaOutput | ConfluentOutput | LinesOutput
