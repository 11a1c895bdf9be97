"""What Kafka's topics are through either client: what is never left to a setting, a source, a sink."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from streamnb.base import Partition, Start
from streamnb.errors import DeliveryError, PositionError, SettingsError, TransportError
from streamnb.transports.positions import check_positions

log = logging.getLogger(__name__)

LINGER_MS = 20
BATCH_BYTES = 256 * 1024

_EXACTLY_ONCE = "positions are kept in the snapshot, so that every record is learned exactly once"
_ACKNOWLEDGED = "a score counts only when every replica in sync has it, once and in order"
_NO_GROUP = "one learner owns its partitions and joins no group"
_TRANSACTIONS = "transactions are the engine's to begin and to commit"

OWNED_BY_BOTH: Mapping[str, str] = {
    "enable.auto.commit": _EXACTLY_ONCE,
    "auto.commit.interval.ms": _EXACTLY_ONCE,
    "auto.offset.reset": "a position that the log does not hold stops the stream instead of skipping records",
    "isolation.level": "records of an aborted transaction must not be learned",
    "allow.auto.create.topics": "a misspelt topic must be an error, not a new topic",
    "check.crcs": "a damaged record must not be learned",
    "group.id": "the group that lag tools look at has a setting of its own",
    "group.instance.id": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "max.poll.interval.ms": _NO_GROUP,
    "transactional.id": _TRANSACTIONS,
    "transaction.timeout.ms": _TRANSACTIONS,
    "acks": _ACKNOWLEDGED,
    "enable.idempotence": _ACKNOWLEDGED,
    "retries": _ACKNOWLEDGED,
    "max.in.flight.requests.per.connection": _ACKNOWLEDGED,
    "delivery.timeout.ms": "the sink has a setting of its own for it",
    "partitioner": "a score goes to the partition that its record came from",
}
"""Kafka's settings, by Kafka's own names, that both transports choose, and why."""


class Secret(str):
    """A password that does not show where settings are printed, a client's own debug messages included."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def checked_topics(topics: Sequence[str]) -> list[str]:
    """The topics to read, each once, in order.

    Raises
    ------
    SettingsError
        There is none.
    """
    if not topics or isinstance(topics, str):
        raise SettingsError("`topics` names no topic.", 'Give a list, such as ["mail"].')
    return sorted(set(topics))


def no_topic(topic: str, brokers: str) -> TransportError:
    """The error for a topic that must exist."""
    hint = "Create it, or correct the name; topics are never created by reading or scoring."
    return TransportError(f"Topic {topic} does not exist at {brokers}.", hint)


def check_partitions(found: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    """Topics have as many partitions as were asked for.

    Raises
    ------
    TransportError
        One existed before, with another number of them.
    """
    for name, count in found.items():
        if count != wanted[name]:
            what = f"Topic {name} exists with {count} partitions, not {wanted[name]}."
            raise TransportError(what, "Use it as it is, or choose another name.")


def starting_positions(
    next_offsets: Mapping[Partition, int],
    start: Start,
    begin: Mapping[Partition, int],
    end: Mapping[Partition, int],
    at_time: Callable[[int], Mapping[Partition, int | None]],
) -> dict[Partition, int]:
    """Where reading starts in each partition, as `streamnb.base.protocols.Source.open` says.

    Parameters
    ----------
    next_offsets, start
        As of `Source.open`.
    begin, end : mapping of Partition to int
        Of the log now.
    at_time : callable
        The offset of the first record from a time in milliseconds on, ``None`` where there is none.

    Raises
    ------
    PositionError
        The log does not hold a position.
    SettingsError
        `start` is before 1970.
    """
    if next_offsets:
        check_positions(next_offsets, begin, end)
        return {**begin, **next_offsets}
    if start == "earliest":
        return dict(begin)
    if start == "latest":
        return dict(end)
    if start < 0:
        raise SettingsError(f"`start` is {start}, before 1970.", "Give milliseconds since 1970.")
    return {one: end[one] if at is None else at for one, at in at_time(start).items()}


def gone(what: str) -> PositionError:
    """The error for a position that the log held when it was opened."""
    hint = "Lengthen the topic's retention, and start from a snapshot whose positions it still holds."
    return PositionError(what, hint)


class TopicSource(ABC):
    """Topics of Kafka, every partition of them, as a client of either kind reads them.

    Parameters
    ----------
    topics : sequence of str
        Topics that exist.
    brokers : str
    group : str, optional
        The consumer group under which `commit` leaves positions for lag tools.

    Raises
    ------
    SettingsError
        There is no topic.
    """

    def __init__(self, topics: Sequence[str], brokers: str, group: str | None) -> None:
        self._topics = checked_topics(topics)
        self._brokers = brokers
        self._group = group

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._topics}, {self._brokers!r})"

    def finished(self) -> bool:
        """Whether no record will ever follow: never."""
        return False

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Leave the positions with the group, without joining it; a failure is only logged."""
        if self._group is not None and next_offsets:
            refused = self._tell_group(next_offsets)
            if refused:
                log.warning(
                    "Group %s was not told the positions, for lag tools only: %s", self._group, refused
                )

    @abstractmethod
    def _tell_group(self, next_offsets: Mapping[Partition, int]) -> str:
        """Leave the positions with the group; why it was refused, empty where it was not."""

    def _identity(self, cluster: str | None, topic_ids: Mapping[str, str]) -> dict[str, str]:
        """The ids by the names that a snapshot has for them, where Kafka has them."""
        ids = {"cluster": cluster} | {f"topic {name}": topic_ids[name] for name in sorted(topic_ids)}
        return {name: known for name, known in ids.items() if known}

    def _partitions(self, counts: Mapping[str, int]) -> list[Partition]:
        """Every partition of the topics, of which each has that many.

        Raises
        ------
        TransportError
            A topic does not exist.
        """
        for topic in self._topics:
            if topic not in counts:
                raise no_topic(topic, self._brokers)
        return [Partition(topic, number) for topic in self._topics for number in range(counts[topic])]


class TopicSink:
    """A topic of Kafka, every record of which is acknowledged by all replicas in sync.

    A record from input partition p goes to partition p modulo the topic's partitions, so that the records
    of one input partition keep their order. The first failure stays, and every call says so from then on.

    Parameters
    ----------
    topic : str
    brokers : str
    described : mapping of str to int
        The topic's partitions, if it exists.

    Raises
    ------
    TransportError
        The topic does not exist.
    """

    def __init__(self, topic: str, brokers: str, described: Mapping[str, int]) -> None:
        if topic not in described:
            raise no_topic(topic, brokers)
        self._topic = topic
        self._brokers = brokers
        self._partitions = described[topic]
        self._failure: DeliveryError | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._topic!r}, {self._brokers!r})"

    def _fail(self, target: int | None, cause: object) -> None:
        """Remember the first failure; called by a client's thread too."""
        if self._failure is None:
            where = self._topic if target is None else f"{self._topic}-{target}"
            what = f"A record for {where} was not delivered: {cause}."
            self._failure = DeliveryError(what, "Start again: the engine resumes from its last snapshot.")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _not_acknowledged(self, waiting: int, timeout_ms: int) -> DeliveryError:
        what = f"{waiting} records for topic {self._topic} were not acknowledged within {timeout_ms} ms."
        return DeliveryError(what, "Check that the brokers run; nothing was snapshotted.")
