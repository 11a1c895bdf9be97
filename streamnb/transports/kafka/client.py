"""Settings, connections, topics and errors of kafka-python, shared by the source, the sink and the checks.

No type of kafka-python leaves the transports. Its exceptions become a `TransportError`; its loggers report
only warnings, and print nothing to stderr, unless the application configures them.
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

from streamnb.base import Secret, is_secret
from streamnb.errors import SettingsError, TransportError
from streamnb.transports.kafka.connections import NetClient
from streamnb.transports.kafka.replaced import check_replaced
from streamnb.transports.topics import (
    OWNED_BY_BOTH,
    check_hosts,
    check_partitions,
    check_servers,
)

BOOTSTRAP_TIMEOUT_MS = 30_000
RECONNECT_BACKOFF_MAX_MS = 1_000  # the client's default is 30 s; Kafka's own clients use 1 s
UNKNOWN_TOPIC = 3  # these two are error codes of the Kafka protocol
TOPIC_EXISTS = 36

_BYTES = "keys and values pass the transport as bytes"

OWNED: Mapping[str, str] = {name.replace(".", "_"): why for name, why in OWNED_BY_BOTH.items()} | {
    "default_offset_commit_callback": OWNED_BY_BOTH["enable.auto.commit"],
    "key_deserializer": _BYTES,
    "value_deserializer": _BYTES,
    "key_serializer": _BYTES,
    "value_serializer": _BYTES,
    "max_poll_records": "the engine passes the number of records with each poll",
    "consumer_timeout_ms": "the engine passes the timeout with each poll",
    "kafka_client": "the transport supplies its own connections",
}
"""The settings of kafka-python that the transport fixes, each with the reason for it."""

_KNOWN = {*KafkaConsumer.DEFAULT_CONFIG, *KafkaProducer.DEFAULT_CONFIG, *KafkaAdminClient.DEFAULT_CONFIG}


def kafka_python_settings(client: Mapping[str, object]) -> dict[str, object]:
    """Return the user's settings for kafka-python, checked, with defaults, and with secrets masked in print.

    Raises
    ------
    SettingsError
        The transport fixes one of the settings, kafka-python does not know it, or `bootstrap_servers` is
        missing.
    """
    settings = dict(client)
    for name, value in settings.items():
        if name in OWNED:
            raise SettingsError(f"`{name}` cannot be set: {OWNED[name]}.", "Remove it.")
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN - OWNED.keys(), 1)
            hint = f"Did you mean `{near[0]}`?" if near else "See the settings of kafka-python's clients."
            raise SettingsError(f"`{name}` is not a setting of kafka-python.", hint)
        if isinstance(value, str) and is_secret(name, value):
            settings[name] = Secret(value)
    check_servers(settings.get("bootstrap_servers"), "bootstrap_servers")
    if isinstance(settings.get("api_version"), list):  # configuration files have no tuples
        settings["api_version"] = tuple(settings["api_version"])  # type: ignore[arg-type]
    settings.setdefault("bootstrap_timeout_ms", BOOTSTRAP_TIMEOUT_MS)
    settings.setdefault("reconnect_backoff_max_ms", RECONNECT_BACKOFF_MAX_MS)
    return settings


def brokers(settings: Mapping[str, object]) -> str:
    """Return the bootstrap servers as text, for an error message."""
    servers = settings["bootstrap_servers"]
    return servers if isinstance(servers, str) else ", ".join(map(str, servers))  # type: ignore[call-overload]


def connect(kind: type[KafkaConsumer], settings: Mapping[str, object], **owned: object) -> KafkaConsumer:
    """Return a connected client of kafka-python.

    Parameters
    ----------
    kind : type
        The class of a consumer, a producer or an admin client.
    settings : mapping
        The result of `kafka_python_settings`; settings that `kind` does not have are left out.
    **owned
        The settings that the transport fixes.

    Raises
    ------
    SettingsError
        The client rejects its settings, or it is a version that lacks what this transport replaces.
    TransportError
        No broker answered within ``bootstrap_timeout_ms``, or authentication failed.
    """
    check_replaced()
    logger = logging.getLogger("kafka")
    if not logger.handlers:
        # Without a handler, logging's last resort would print every reconnect of the client to stderr.
        logger.addHandler(logging.NullHandler())
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    begun: list[NetClient] = []

    def net_client(**configs: object) -> NetClient:
        begun.append(NetClient(**configs))
        return begun[-1]

    if not any("proxy" in name for name in settings):  # it may know names that this machine does not
        check_hosts(brokers(settings))
    passed = {name: value for name, value in settings.items() if name in kind.DEFAULT_CONFIG}
    try:
        return kind(**passed, **owned, kafka_client=net_client)
    except (KafkaConfigurationError, ValueError, TypeError, AssertionError, RuntimeError) as error:
        _close(begun)
        hint = "Correct that setting."
        raise SettingsError(f"kafka-python rejects its settings: {error}.", hint) from None
    except (KafkaError, OSError) as error:
        failure, refused = (begun[-1].failure, begun[-1].refused()) if begun else (None, False)
        _close(begun)
        why = str(failure or error).rpartition("Error: ")[2].rstrip(".")  # drops the class names in front
        if refused:
            hint = "Check `security_protocol`, `sasl_mechanism`, the user, the password and `ssl_cafile`."
            what = f"Authentication with Kafka at {brokers(settings)} failed: {why}."
            raise TransportError(what, hint) from None
        waited = f"within {settings['bootstrap_timeout_ms']} ms"
        hint = "Check `bootstrap_servers`, the security settings, and that the broker runs."
        what = f"No Kafka broker answered at {brokers(settings)} {waited}: {why}."
        raise TransportError(what, hint) from error


def _close(begun: Sequence[NetClient]) -> None:
    """Close what a failed constructor of kafka-python 3.0.12 leaves running: an IO thread and its sockets."""
    for client in begun:
        client.close()


@contextmanager
def translated(what: str, settings: Mapping[str, object]) -> Iterator[None]:
    """Translate the client's exceptions in the block to a `TransportError` that begins with `what`."""
    try:
        yield
    except (KafkaError, OSError) as error:
        hint = "Check that the brokers run, and read their logs."
        raise TransportError(f"{what} failed at {brokers(settings)}: {error}.", hint) from error


def describe(
    admin: KafkaAdminClient, topics: Sequence[str], settings: Mapping[str, object]
) -> dict[str, dict[str, Any]]:
    """Return the cluster's description of each existing topic by name; missing topics are left out.

    Raises
    ------
    TransportError
        The brokers do not answer, or this user may not describe a topic.
    """
    with translated("Looking up topics", settings):
        found = admin.describe_topics(list(topics))
    described = {}
    for topic in found:
        error = for_code(topic["error_code"])
        if error.errno == 0:
            described[topic["name"]] = topic
        elif error.errno != UNKNOWN_TOPIC:
            hint = "Check the topic's name and the user's ACLs."
            raise TransportError(f"Topic {topic['name']} cannot be used: {error.description}", hint)
    return described


def describe_topics(client: Mapping[str, object], topics: Sequence[str]) -> dict[str, int]:
    """Return the number of partitions of each existing topic; missing topics are left out.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    TransportError
        No broker answers, or this user may not describe a topic.
    """
    settings = kafka_python_settings(client)
    admin = connect(KafkaAdminClient, settings)
    try:
        found = describe(admin, topics, settings)
    finally:
        admin.close()
    return {name: len(topic["partitions"]) for name, topic in found.items()}


def create_topics(client: Mapping[str, object], topics: Mapping[str, int]) -> None:
    """Create topics, each with its number of partitions, and wait until the brokers list them.

    A topic that already exists with that number of partitions stays as it is.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    TransportError
        No broker answers, the broker rejects a topic, or a topic exists with another number of partitions.
    """
    settings = kafka_python_settings(client)
    admin = connect(KafkaAdminClient, settings)
    try:
        with translated("Creating topics", settings):
            wanted = {name: {"num_partitions": count} for name, count in topics.items()}
            answers = admin.create_topics(wanted, raise_errors=False)["topics"]
        for answer in answers:
            if answer["error_code"] not in {0, TOPIC_EXISTS}:
                said = answer.get("error_message") or for_code(answer["error_code"]).description
                what = f"Topic {answer['name']} cannot be created: {said.rstrip('.')}."
                raise TransportError(what, "Choose another name, or ask for the right to create topics.")
        with translated("Waiting for new topics", settings):
            admin.wait_for_topics(list(topics))
        found = describe(admin, list(topics), settings)
        check_partitions({name: len(topic["partitions"]) for name, topic in found.items()}, topics)
    finally:
        admin.close()
