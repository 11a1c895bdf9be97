"""Base classes of both Kafka transports, and the client settings that a user may not override.

kafka-python and librdkafka differ in names and defects; the contract with the engine does not. This module
holds the part of it that needs no client: topic and position checks, error sentences, commits for lag tools.
"""

from __future__ import annotations

import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

from streamnb.base import Partition, Start, checked_partitions
from streamnb.errors import (
    DeliveryError,
    FencedError,
    MissingTopicError,
    SettingsError,
    TooLargeError,
    TransportError,
)
from streamnb.transports.positions import partitions_to_read, starting_positions

log = logging.getLogger(__name__)

PORT_MAX = 65_535
LINGER_MS = 20
BATCH_BYTES = 256 * 1024
IN_FLIGHT_MAX = (
    20_000  # records: the clients buffer without bound; large ones reach `IN_FLIGHT_BYTES_MAX` before
)

# The broker aborts an open transaction this long after `delivery_timeout_ms`, so that readers with isolation
# level `read_committed` wait no longer. The abort also fences the producer, so it must not come earlier.
ABORT_AFTER_MS = 60_000
COORDINATOR_BUDGET_S = 30.0
# The metadata of the offsets that a transaction commits. Offsets without it are advice for lag tools, or were
# set by such a tool: they do not tell which scores were published.
PUBLISHED = "scores published exactly once by streamnb"

TOO_LARGE_HINT = (
    "Set `output.bytes_max`, or for dead letters `dead_letters.bytes_max`, below the topic's "
    "`max.message.bytes` and the client's own limit, or raise these. A restart alone fails again."
)

_EXACTLY_ONCE = "the snapshot keeps the positions, so that every record is learned exactly once"
_ACKNOWLEDGED = "a score counts as published only when every in-sync replica has it, once and in order"
_NO_GROUP = "the learner assigns its partitions itself and joins no consumer group"
_TRANSACTIONS = "the engine begins and commits transactions"

OWNED_BY_BOTH: Mapping[str, str] = {
    "enable.auto.commit": _EXACTLY_ONCE,
    "auto.commit.interval.ms": _EXACTLY_ONCE,
    "auto.offset.reset": "a position that the log no longer holds must stop the stream, not skip records",
    "isolation.level": "records of an aborted transaction must not be learned",
    "allow.auto.create.topics": "a misspelt topic must be an error, not a new topic",
    "check.crcs": "a damaged record must not be learned",
    "group.id": "use `source.group`, the group under which lag tools find the positions",
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
    "delivery.timeout.ms": "the sink's own `delivery_timeout_ms` and `in_flight_bytes_max` take its place",
    "partitioner": "a score goes to the partition with the number of its input partition",
}
"""The client settings, by Kafka's own names, that both transports fix, each with the reason for it."""


def checked_topics(topics: Sequence[str]) -> list[str]:
    """Return the topics to read, sorted and without duplicates.

    Raises
    ------
    SettingsError
        The list is empty.
    """
    if not topics or isinstance(topics, str):
        raise SettingsError("`topics` names no topic.", 'Give a list, such as ["mail"].')
    return sorted(set(topics))


def check_servers(servers: object, name: str) -> None:
    """Check the addresses of the brokers, before a client waits for them in vain.

    Parameters
    ----------
    servers : object
        The setting as it was given: text with commas, or a list of text.
    name : str
        The setting's name, for errors.

    Raises
    ------
    SettingsError
        There is no address, or one has no host, or a port that is not from 1 to 65535.
    """
    found = servers.split(",") if isinstance(servers, str) else servers
    if not found:
        raise SettingsError(f"`{name}` is missing.", 'Name a broker, such as "localhost:9092".')
    if not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
        raise SettingsError(f"`{name}` is {servers!r}.", 'Give text, such as "localhost:9092".')
    for server in found:
        host, colon, port = server.strip().rpartition(":")
        is_bare = not colon or port.endswith("]")  # no port, or an IPv6 address in brackets
        is_port = port.isdecimal() and 1 <= int(port[:6]) <= PORT_MAX
        if not (port if is_bare else host and is_port):
            raise SettingsError(
                f"`{name}` has the address {server.strip()!r}, which is not host:port.",
                f"Give each broker a host and a port from 1 to {PORT_MAX}.",
            )


def check_hosts(servers: str) -> None:
    """Check that some broker's name is known, because a client would wait 30 s for an unknown one.

    A name server that does not answer is no reason to stop: the client asks again.

    Parameters
    ----------
    servers : str
        Addresses of brokers, separated by commas.

    Raises
    ------
    TransportError
        No name is known.
    """
    for server in servers.split(","):
        host, _, port = server.strip().rpartition("://")[2].rpartition(":")
        try:
            socket.getaddrinfo((host or port).strip("[]"), None)
        except socket.gaierror as error:
            if error.errno not in {socket.EAI_NONAME, socket.EAI_NODATA}:
                return
        except UnicodeError:  # no name of a host has such a label
            continue
        else:
            return
    hint = "Correct the name in `[kafka]` or `[confluent]`, or start again once a name server has it."
    raise TransportError(f"No name server knows a broker of {servers}.", hint)


def no_topic(topic: str, brokers: str) -> MissingTopicError:
    """Return the error for a topic that does not exist, although it must."""
    hint = "Create it, or correct its name; reading and scoring never create a topic."
    return MissingTopicError(f"Topic {topic} does not exist at {brokers}.", hint)


def topic_gone(topic: str, brokers: str) -> MissingTopicError:
    """Return the error for a topic that was deleted while it was read."""
    hint = (
        "If it is re-created, set a new `snapshots.directory`, because its offsets begin again; `--from` "
        "with the newest snapshot keeps the model."
    )
    return MissingTopicError(f"Topic {topic} no longer exists at {brokers}.", hint)


def check_partitions(found: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    """Check that each topic has the wanted number of partitions.

    Raises
    ------
    TransportError
        A topic already existed with another number of partitions.
    """
    for name, count in found.items():
        if count != wanted[name]:
            what = f"Topic {name} exists with {count} partitions, not {wanted[name]}."
            raise TransportError(what, "Use its present number of partitions, or choose another name.")


def transactional_id(group: str) -> str:
    """Return the id of a group's transactions; with one id for both clients, each fences the other."""
    return f"streamnb-{group}"


def is_published(metadata: str | None) -> bool:
    """Return whether a transaction committed the offset that has this metadata.

    confluent-kafka 2.16 sends metadata with the null byte that ends a string in C, and reads up to one:
    behind metadata without it, it finds whatever follows in memory.
    """
    return (metadata or "").startswith(PUBLISHED)


def fenced_by(cause: str) -> FencedError:
    """Return the error for a fenced producer."""
    return FencedError(
        f"This learner was fenced: another one of its group has started, or it paused too long: {cause}.",
        "Run only one learner per group, or give each its own `source.group`.",
    )


class TopicSource(ABC):
    """A source that reads partitions of its Kafka topics, by default all; the base class for both clients.

    Parameters
    ----------
    topics : sequence of str
        Names of topics. They must exist when the source is opened.
    brokers : str
        The bootstrap servers as an error message names them.
    group : str, optional
        The consumer group to which `commit` commits positions, for lag tools only.
    partitions : sequence of int, optional
        The numbers of the partitions to read of each topic, so that other processes can read the others. By
        default all are read, also those that a topic gains.

    Raises
    ------
    SettingsError
        `topics` is empty, or `partitions` is, or it has a number twice or below 0.
    """

    def __init__(
        self,
        topics: Sequence[str],
        brokers: str,
        group: str | None,
        partitions: Sequence[int] | None = None,
    ) -> None:
        self._topics = checked_topics(topics)
        self._chosen = checked_partitions(partitions)
        self._counts: dict[str, int] = {}  # of the partitions of each topic, as last reported
        self._brokers = brokers
        self._group = group
        self._committed: dict[Partition, int] = {}  # what this source committed to the group last
        self._warned_of_another = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._topics}, {self._brokers!r})"

    def finished(self) -> bool:
        """Return False: a topic has no end."""
        return False

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit the positions to the group, without joining it, and only log a failure.

        Only lag tools read them: recovery takes its positions from the snapshot. Where the group's positions
        are not those of the last commit, another engine uses the same group, which is logged once.
        """
        if self._group is not None and next_offsets:
            self._warn_of_another()
            failure = self._commit_to_group(next_offsets)
            self._committed = {} if failure else dict(next_offsets)
            if failure:
                log.warning(
                    "The positions were not committed to group %s, which only lag tools read: %s",
                    self._group,
                    failure,
                )

    def _warn_of_another(self) -> None:
        if self._warned_of_another or not self._committed:
            return
        found = self._committed_in_group(list(self._committed))
        others = {one: at for one, at in found.items() if at != self._committed[one]}
        if others:
            self._warned_of_another = True
            places = ", ".join(f"{one} @ {at}" for one, at in sorted(others.items()))
            log.warning(
                "Another engine or tool commits positions to group %s: %s. A group does not divide records "
                "among engines, `source.partitions` does. Give each engine a group or partitions of its own.",
                self._group,
                places,
            )

    @abstractmethod
    def _committed_in_group(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """Return the group's positions, without those that are not set; empty if they cannot be had."""

    @abstractmethod
    def _commit_to_group(self, next_offsets: Mapping[Partition, int]) -> str:
        """Commit the positions to the group; return the cause of a failure, or an empty string."""

    def _identity(self, cluster: str | None, topic_ids: Mapping[str, str]) -> dict[str, str]:
        """Return the ids under their names in a snapshot, without those that the broker does not have."""
        ids = {"cluster": cluster} | {f"topic {name}": topic_ids[name] for name in sorted(topic_ids)}
        return {name: known for name, known in ids.items() if known}

    def _partitions(self, counts: Mapping[str, int]) -> list[Partition]:
        """Return the partitions to read, given the number of partitions of each existing topic.

        Raises
        ------
        SettingsError
            A topic does not have a chosen partition.
        TransportError
            A topic does not exist.
        """
        for topic in self._topics:
            if topic not in counts:
                raise no_topic(topic, self._brokers)
        self._counts = {topic: counts[topic] for topic in self._topics}
        read = [partitions_to_read(*one, self._chosen) for one in self._counts.items()]
        for topic, count in self._counts.items() if self._chosen is not None else ():
            log.info("Topic %s has %d partitions; this process reads %s", topic, count, self._numbers())
        return [partition for partitions in read for partition in partitions]

    def _numbers(self) -> str:
        return ", ".join(map(str, self._chosen or ()))

    def _positions(
        self,
        next_offsets: Mapping[Partition, int],
        start: Start,
        begin: Mapping[Partition, int],
        end: Mapping[Partition, int],
        at_time: Callable[[int], Mapping[Partition, int | None]],
    ) -> dict[Partition, int]:
        """Return `starting_positions` in the partitions that this source reads."""
        return starting_positions(next_offsets, start, begin, end, at_time, self._chosen)

    def _gained(self, counts: Mapping[str, int], known: Collection[tuple[str, int]]) -> list[Partition]:
        """Return the partitions to read that are not known yet.

        If the partitions were chosen, there are none, and each growth of a topic is logged once.

        Parameters
        ----------
        counts : mapping of str to int
            The number of partitions that each topic has now.
        known : collection of Partition
            The partitions that are read already.
        """
        if self._chosen is None:
            every = [Partition(topic, number) for topic in sorted(counts) for number in range(counts[topic])]
            return [one for one in every if one not in known]
        for topic, before in self._counts.items():
            if (count := counts.get(topic, 0)) > before:
                self._counts[topic] = count
                said = "Topic %s now has %d partitions; this process reads %d of them (%s). Make sure that "
                said += "`source.partitions` of some process names each new one."
                log.warning(said, topic, count, len(self._chosen), self._numbers())
        return []


class TopicSink:
    """A sink that writes to one Kafka topic and waits for all in-sync replicas; the base for both clients.

    A record from input partition p goes to output partition p modulo the topic's partition count, so that
    the records of one input partition keep their order. The sink remembers the first failed delivery and
    raises it from every later call: what follows a lost record must not reach a snapshot.

    Parameters
    ----------
    topic : str
    brokers : str
        The bootstrap servers as an error message names them.
    described : mapping of str to int
        The number of partitions of each existing topic.

    Raises
    ------
    TransportError
        The topic does not exist.
    """

    _too_large_hint = TOO_LARGE_HINT

    def __init__(self, topic: str, brokers: str, described: Mapping[str, int]) -> None:
        if topic not in described:
            raise no_topic(topic, brokers)
        self._topic = topic
        self._brokers = brokers
        self._partitions = described[topic]
        self._failure: DeliveryError | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._topic!r}, {self._brokers!r})"

    def _fail(self, target: int | None, cause: object, *, too_large: bool = False) -> None:
        """Remember the first failed delivery. A client's own thread may call this too."""
        if self._failure is None:
            where = self._topic if target is None else f"{self._topic}-{target}"
            what = f"A record for {where} was not delivered: {cause}."
            self._failure = (
                TooLargeError(what, self._too_large_hint)
                if too_large
                else DeliveryError(what, "Restart streamnb: it resumes from its last snapshot.")
            )

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _not_acknowledged(self, waiting: int, timeout_ms: int) -> DeliveryError:
        what = f"{waiting} records for topic {self._topic} were not acknowledged within {timeout_ms} ms."
        return DeliveryError(what, "Check that the brokers run; no snapshot was taken.")
