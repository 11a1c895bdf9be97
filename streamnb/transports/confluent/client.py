"""Settings, connections, topics and errors of librdkafka, shared by the source, the sink and the checks.

confluent-kafka wraps librdkafka and is optional. None of its types leaves the transports. Its exceptions
become a `TransportError`, and librdkafka's messages go to the logger ``kafka.librdkafka`` instead of stderr.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from streamnb.base import FETCHED_BYTES_MAX, Secret, is_secret
from streamnb.errors import SettingsError, TransportError
from streamnb.transports.topics import (
    OWNED_BY_BOTH,
    check_hosts,
    check_partitions,
    check_servers,
)

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, Uuid
    from confluent_kafka.admin import AdminClient, NewTopic, TopicDescription
except ImportError as error:
    raise SettingsError(
        f"The confluent transport needs confluent-kafka, which cannot be imported: {error}.",
        "Install it: pip install 'streamnb[confluent]'.",
    ) from error

log = logging.getLogger("kafka.librdkafka")

CONNECT_TIMEOUT_MS = 30_000  # librdkafka's own default for `socket.connection.setup.timeout.ms`
REQUEST_TIMEOUT_S = 30.0
STEP_S = 0.5  # each request while connecting; between two, a failed authentication is noticed

BOUNDS: Mapping[str, object] = {
    # librdkafka lowers `fetch.max.bytes` to it, unless the user sets that, or a higher `message.max.bytes`.
    "queued.max.messages.kbytes": FETCHED_BYTES_MAX // 2 >> 10,
    # A queued message takes some 500 bytes more than its content, which the first limit does not count.
    "queued.min.messages": 20_000,
    # With a full queue librdkafka fetches again after this time, by default after a second.
    "fetch.queue.backoff.ms": 10,
}
"""Bounds on what a consumer reads ahead: half of `FETCHED_BYTES_MAX` queued, half in an answer."""

_NO_GROUP = OWNED_BY_BOTH["group.instance.id"]
_ACKNOWLEDGED = OWNED_BY_BOTH["acks"]
_SINKS_OWN = OWNED_BY_BOTH["delivery.timeout.ms"]
_REPORTS = "the transport needs the client's reports itself"

OWNED: Mapping[str, str] = {
    **OWNED_BY_BOTH,
    "auto.commit.enable": OWNED_BY_BOTH["enable.auto.commit"],
    "enable.auto.offset.store": OWNED_BY_BOTH["enable.auto.commit"],
    "on_commit": OWNED_BY_BOTH["enable.auto.commit"],
    "enable.partition.eof": "the transport needs it to find gaps at the end of the log",
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "request.required.acks": _ACKNOWLEDGED,
    "message.send.max.retries": _ACKNOWLEDGED,
    "max.in.flight": _ACKNOWLEDGED,
    "queuing.strategy": _ACKNOWLEDGED,
    "queue.buffering.max.messages": _SINKS_OWN,
    "queue.buffering.max.kbytes": _SINKS_OWN,
    "message.timeout.ms": _SINKS_OWN,
    "delivery.report.only.error": _REPORTS,
    "on_delivery": _REPORTS,
    "dr_cb": _REPORTS,
    "dr_msg_cb": _REPORTS,
    "error_cb": _REPORTS,
    "logger": _REPORTS,
    "log.queue": _REPORTS,
}
"""The settings of librdkafka that the transport fixes, each with the reason for it."""

C = TypeVar("C", Consumer, Producer, AdminClient)


class Errors:
    """A client's `error_cb`: logs every error and remembers the last authentication error.

    librdkafka reports a failed connection only here: a request just times out.

    Attributes
    ----------
    authentication : KafkaError or None
        The last error of SASL authentication or TLS.
    """

    def __init__(self) -> None:
        self.authentication: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Log one error; the client calls this from its `poll`."""
        if error.code() in {KafkaError._AUTHENTICATION, KafkaError._SSL}:  # noqa: SLF001 no other name
            self.authentication = error
        log.warning("%s", error.str())


def librdkafka_settings(client: Mapping[str, object]) -> dict[str, object]:
    """Return the user's settings for librdkafka, checked, with secrets masked in print.

    librdkafka itself rejects the names it does not know.

    Raises
    ------
    SettingsError
        The transport fixes one of the settings, or ``bootstrap.servers`` is missing.
    """
    settings = dict(client)
    for name, value in settings.items():
        if name in OWNED:
            raise SettingsError(f"`{name}` cannot be set: {OWNED[name]}.", "Remove it.")
        if "_" in name and name.replace("_", ".") in {*OWNED, "bootstrap.servers"}:
            hint = f"Did you mean `{name.replace('_', '.')}`?"
            raise SettingsError(f"`{name}` is not a setting of librdkafka.", hint)
        if isinstance(value, list | tuple):  # librdkafka takes lists as text with commas
            settings[name] = ",".join(map(str, value))
        elif isinstance(value, str) and is_secret(name, value):
            settings[name] = Secret(value)
    check_servers(settings.get("bootstrap.servers"), "bootstrap.servers")
    return settings


def brokers(settings: Mapping[str, object]) -> str:
    """Return the bootstrap servers as text, for an error message."""
    return str(settings["bootstrap.servers"])


def reason(error: KafkaException | KafkaError) -> str:
    """Return the text of a client's error, without a full stop."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return (inner.str() if isinstance(inner, KafkaError) else str(inner)).rstrip(".")


def build(kind: type[C], settings: Mapping[str, object], errors: Errors, **owned: object) -> C:
    """Return a client of librdkafka, which connects in the background.

    Parameters
    ----------
    kind : type
        The class of a consumer, a producer or an admin client.
    settings : mapping
        The result of `librdkafka_settings`.
    errors : Errors
        The client's `error_cb`.
    **owned
        The settings that the transport fixes, with ``_`` for each dot.

    Raises
    ------
    SettingsError
        The client rejects a setting.
    """
    if not log.handlers:
        # Without a handler, logging's last resort would print every reconnect of librdkafka to stderr.
        log.addHandler(logging.NullHandler())
    own = {name.replace("_", "."): value for name, value in owned.items()}
    # By default a producer, too, asks the broker to create the topics of its metadata requests.
    own |= {"allow.auto.create.topics": False, "error_cb": errors, "logger": log}
    try:
        return kind({**settings, **own})
    except (KafkaException, TypeError, ValueError) as error:
        what = reason(error) if isinstance(error, KafkaException) else str(error)
        hint = "See librdkafka's list of configuration properties."
        raise SettingsError(f"librdkafka rejects its settings: {what}.", hint) from None


def cluster_id(
    admin: AdminClient, settings: Mapping[str, object], errors: Errors, wait_s: float | None = None
) -> str:
    """Wait until a broker answers, and return the cluster's id, or an empty string if it has none.

    It waits `wait_s` seconds, by default ``socket.connection.setup.timeout.ms``.

    Raises
    ------
    TransportError
        Authentication failed, or no broker answered in this time.
    """
    setup_ms = int(str(settings.get("socket.connection.setup.timeout.ms", CONNECT_TIMEOUT_MS)))
    wait_ms = setup_ms if wait_s is None else int(wait_s * 1000)
    deadline_s = time.monotonic() + wait_ms / 1000
    while True:
        left_s = deadline_s - time.monotonic()
        try:
            asked = admin.describe_cluster(request_timeout=max(min(STEP_S, left_s), 0.01))
            return str(asked.result().cluster_id or "")
        except KafkaException as error:
            admin.poll(0)
            if errors.authentication is not None:
                hint = "Check `security.protocol`, `sasl.mechanism`, the user, the password and certificates."
                cause = reason(errors.authentication)
                what = f"Authentication with Kafka at {brokers(settings)} failed: {cause}."
                raise TransportError(what, hint) from None
            if time.monotonic() >= deadline_s:
                what = f"No Kafka broker answered at {brokers(settings)} within {wait_ms} ms."
                hint = "Check `bootstrap.servers`, the security settings, and that the broker runs."
                raise TransportError(what, hint) from error


def connected_admin(settings: Mapping[str, object]) -> AdminClient:
    """Return an admin client after a broker has answered it.

    Raises
    ------
    SettingsError
        The client rejects a setting.
    TransportError
        No broker answered, or authentication failed.
    """
    check_hosts(brokers(settings))
    errors = Errors()
    admin = build(AdminClient, settings, errors)
    cluster_id(admin, settings, errors)
    return admin


@contextmanager
def translated(what: str, settings: Mapping[str, object]) -> Iterator[None]:
    """Translate the client's exceptions in the block to a `TransportError` that begins with `what`."""
    try:
        yield
    except KafkaException as error:
        hint = "Check that the brokers run, and read their logs."
        raise TransportError(f"{what} failed at {brokers(settings)}: {reason(error)}.", hint) from error


def describe(
    admin: AdminClient,
    topics: Sequence[str],
    settings: Mapping[str, object],
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> dict[str, TopicDescription]:
    """Return the cluster's description of each existing topic by name; missing topics are left out.

    Raises
    ------
    TransportError
        The brokers do not answer, or this user may not describe a topic.
    """
    described = {}
    with translated("Looking up topics", settings):
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=timeout_s)
        for name, answer in asked.items():
            try:
                described[name] = answer.result()
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                if code in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_EXCEPTION}:
                    hint = "Check the topic's name and the user's ACLs."
                    raise TransportError(f"Topic {name} cannot be used: {reason(error)}.", hint) from error
                raise
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
    settings = librdkafka_settings(client)
    found = describe(connected_admin(settings), topics, settings)
    return {name: len(topic.partitions) for name, topic in found.items()}


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
    settings = librdkafka_settings(client)
    admin = connected_admin(settings)
    wanted = [NewTopic(name, num_partitions=count) for name, count in topics.items()]
    for name, answer in admin.create_topics(wanted, request_timeout=REQUEST_TIMEOUT_S).items():
        try:
            answer.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                hint = "Choose another name, or ask for the right to create topics."
                raise TransportError(f"Topic {name} cannot be created: {reason(error)}.", hint) from error
    deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
    while len(found := describe(admin, list(topics), settings)) < len(topics):
        if time.monotonic() >= deadline_s:
            missing = ", ".join(sorted(topics.keys() - found.keys()))
            what = f"The brokers do not list the new topic {missing} after {REQUEST_TIMEOUT_S:.0f} s."
            raise TransportError(what, "Read the brokers' logs.")
        time.sleep(0.05)
    check_partitions({name: len(topic.partitions) for name, topic in found.items()}, topics)


def topic_id(found: Uuid | None) -> str:
    """Return a topic's id in Kafka's notation, or an empty string if the broker is too old to have one."""
    if found is None or set(str(found)) == {"A"}:  # sixteen zero bytes
        return ""
    # Kafka uses URL-safe base64 without padding.
    return str(found).replace("+", "-").replace("/", "_").rstrip("=")
