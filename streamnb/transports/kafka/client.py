"""What the Kafka source, the sink and the checks share: settings, connecting, topics, the client's errors.

Nothing of kafka-python leaves the transports: its exceptions become a `TransportError`, its loggers stay
quiet unless an application gives them a level.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaConfigurationError, KafkaError, for_code

from streamnb.errors import SettingsError, TransportError
from streamnb.transports.kafka.connections import NetClient
from streamnb.transports.topics import OWNED_BY_BOTH, Secret, check_partitions

BOOTSTRAP_TIMEOUT_MS = 30_000
RECONNECT_BACKOFF_MAX_MS = 1_000  # the client's own 30 s would outlast by far a broker that is back
UNKNOWN_TOPIC = 3  # the broker's numbers for an error
TOPIC_EXISTS = 36

_BYTES = "records cross the transport as bytes"

OWNED: Mapping[str, str] = {name.replace(".", "_"): why for name, why in OWNED_BY_BOTH.items()} | {
    "default_offset_commit_callback": OWNED_BY_BOTH["enable.auto.commit"],
    "key_deserializer": _BYTES,
    "value_deserializer": _BYTES,
    "key_serializer": _BYTES,
    "value_serializer": _BYTES,
    "max_poll_records": "the engine says with each poll how many records it takes",
    "consumer_timeout_ms": "the engine says with each poll how long it waits",
    "kafka_client": "the transport builds the connection",
}
"""The client's settings that the transport chooses, and why."""

_KNOWN = {*KafkaConsumer.DEFAULT_CONFIG, *KafkaProducer.DEFAULT_CONFIG, *KafkaAdminClient.DEFAULT_CONFIG}


def client_settings(client: Mapping[str, object]) -> dict[str, object]:
    """The user's settings for kafka-python, checked; secrets are masked wherever they are printed.

    Raises
    ------
    SettingsError
        A setting is the transport's own or unknown to kafka-python, or `bootstrap_servers` is missing.
    """
    settings = dict(client)
    for name, value in settings.items():
        if name in OWNED:
            raise SettingsError(f"`{name}` cannot be set: {OWNED[name]}.", "Remove it.")
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN - OWNED.keys(), 1)
            hint = f"Did you mean `{near[0]}`?" if near else "See the settings of kafka-python."
            raise SettingsError(f"`{name}` is not a setting of the Kafka client.", hint)
        if isinstance(value, str) and ("password" in name or "proxy" in name):
            settings[name] = Secret(value)
    if not settings.get("bootstrap_servers"):
        raise SettingsError("`bootstrap_servers` is missing.", 'Name a broker, such as "localhost:9092".')
    if isinstance(settings.get("api_version"), list):  # configuration files have no tuples
        settings["api_version"] = tuple(settings["api_version"])  # type: ignore[arg-type]
    settings.setdefault("bootstrap_timeout_ms", BOOTSTRAP_TIMEOUT_MS)
    settings.setdefault("reconnect_backoff_max_ms", RECONNECT_BACKOFF_MAX_MS)
    return settings


def brokers(settings: Mapping[str, object]) -> str:
    """The bootstrap servers as one would write them in a message."""
    servers = settings["bootstrap_servers"]
    return servers if isinstance(servers, str) else ", ".join(map(str, servers))  # type: ignore[call-overload]


def connect(kind: type[KafkaConsumer], settings: Mapping[str, object], **owned: object) -> KafkaConsumer:
    """A connected client of kafka-python.

    Parameters
    ----------
    kind : type
        A consumer, a producer or an admin client.
    settings : mapping
        From `client_settings`; what belongs to another kind is left out.
    **owned
        The transport's own settings.

    Raises
    ------
    SettingsError
        The client refuses its settings.
    TransportError
        No broker answered within ``bootstrap_timeout_ms``.
    """
    logger = logging.getLogger("kafka")
    if not logger.handlers:
        # Without a handler of its own the client's every reconnect would go to stderr.
        logger.addHandler(logging.NullHandler())
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    begun: list[NetClient] = []

    def net_client(**configs: object) -> NetClient:
        begun.append(NetClient(**configs))
        return begun[-1]

    passed = {name: value for name, value in settings.items() if name in kind.DEFAULT_CONFIG}
    try:
        return kind(**passed, **owned, kafka_client=net_client)
    except (KafkaConfigurationError, ValueError, TypeError, AssertionError, RuntimeError) as error:
        _close(begun)
        raise SettingsError(f"The Kafka client refuses its settings: {error}.", "Correct them.") from None
    except (KafkaError, OSError) as error:
        failure, refused = (begun[-1].failure, begun[-1].refused()) if begun else (None, False)
        _close(begun)
        why = str(failure or error).rpartition("Error: ")[2].rstrip(".")  # without the names of classes
        if refused:
            hint = "Check `security_protocol`, `sasl_mechanism`, the user, the password and `ssl_cafile`."
            raise TransportError(f"Kafka at {brokers(settings)} refuses to let us in: {why}.", hint) from None
        waited = f"within {settings['bootstrap_timeout_ms']} ms"
        hint = "Check `bootstrap_servers`, the security settings, and that the broker runs."
        what = f"No Kafka broker answered at {brokers(settings)} {waited}: {why}."
        raise TransportError(what, hint) from error


def _close(begun: Sequence[NetClient]) -> None:
    """End what a constructor left running when it failed: an IO thread and its sockets."""
    for client in begun:
        client.close()


@contextmanager
def translated(what: str, settings: Mapping[str, object]) -> Iterator[None]:
    """Turn the client's exceptions inside the block into a `TransportError` that begins with `what`."""
    try:
        yield
    except (KafkaError, OSError) as error:
        hint = "Check that the brokers run and what they log."
        raise TransportError(f"{what} failed at {brokers(settings)}: {error}.", hint) from error


def describe(
    admin: KafkaAdminClient, topics: Sequence[str], settings: Mapping[str, object]
) -> dict[str, dict[str, Any]]:
    """What the cluster says of each topic; one that does not exist is left out.

    Raises
    ------
    TransportError
        The brokers do not answer, or do not let us see a topic.
    """
    with translated("Looking up topics", settings):
        found = admin.describe_topics(list(topics))
    described = {}
    for topic in found:
        error = for_code(topic["error_code"])
        if error.errno == 0:
            described[topic["name"]] = topic
        elif error.errno != UNKNOWN_TOPIC:
            hint = "Check its name and the user's rights."
            raise TransportError(f"Topic {topic['name']} cannot be used: {error.description}", hint)
    return described


def describe_topics(client: Mapping[str, object], topics: Sequence[str]) -> dict[str, int]:
    """How many partitions each topic has; a topic that does not exist is left out.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport's own.
    TransportError
        No broker answers, or a topic may not be seen.
    """
    settings = client_settings(client)
    admin = connect(KafkaAdminClient, settings)
    try:
        found = describe(admin, topics, settings)
    finally:
        admin.close()
    return {name: len(topic["partitions"]) for name, topic in found.items()}


def create_topics(client: Mapping[str, object], topics: Mapping[str, int]) -> None:
    """Create topics with that many partitions each and wait until they can be used.

    A topic that exists with that many partitions is left as it is.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport's own.
    TransportError
        No broker answers, a topic is refused, or exists with another number of partitions.
    """
    settings = client_settings(client)
    admin = connect(KafkaAdminClient, settings)
    try:
        with translated("Creating topics", settings):
            wanted = {name: {"num_partitions": count} for name, count in topics.items()}
            answers = admin.create_topics(wanted, raise_errors=False)["topics"]
        for answer in answers:
            if answer["error_code"] not in {0, TOPIC_EXISTS}:
                said = answer.get("error_message") or for_code(answer["error_code"]).description
                what = f"Topic {answer['name']} cannot be created: {said.rstrip('.')}."
                raise TransportError(what, "Choose another name, or ask for the right to create it.")
        with translated("Waiting for new topics", settings):
            admin.wait_for_topics(list(topics))
        found = describe(admin, list(topics), settings)
        check_partitions({name: len(topic["partitions"]) for name, topic in found.items()}, topics)
    finally:
        admin.close()
