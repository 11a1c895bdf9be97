"""What the confluent source, its sink and the checks share: settings, connecting, topics, errors.

confluent-kafka wraps librdkafka and is optional. Nothing of it leaves the transports: its exceptions become
a `TransportError`, and what librdkafka would print on stderr goes to the logger ``kafka.librdkafka``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from streamnb.errors import SettingsError, TransportError
from streamnb.transports.topics import OWNED_BY_BOTH, Secret, check_partitions

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection
    from confluent_kafka.admin import AdminClient, NewTopic, TopicDescription
except ImportError as missing:
    raise SettingsError(
        f"The confluent transport needs confluent-kafka, which cannot be imported: {missing}.",
        "Install it: pip install 'streamnb[confluent]'.",
    ) from missing

log = logging.getLogger("kafka.librdkafka")

CONNECT_TIMEOUT_MS = 30_000  # librdkafka's own default for `socket.connection.setup.timeout.ms`
REQUEST_TIMEOUT_S = 30.0
STEP_S = 0.5

_NO_GROUP = OWNED_BY_BOTH["group.instance.id"]
_ACKNOWLEDGED = OWNED_BY_BOTH["acks"]
_SINKS_OWN = OWNED_BY_BOTH["delivery.timeout.ms"]
_REPORTS = "the transport listens to the client itself"

OWNED: Mapping[str, str] = {
    **OWNED_BY_BOTH,
    "auto.commit.enable": OWNED_BY_BOTH["enable.auto.commit"],
    "enable.auto.offset.store": OWNED_BY_BOTH["enable.auto.commit"],
    "on_commit": OWNED_BY_BOTH["enable.auto.commit"],
    "enable.partition.eof": "it is how the transport learns of gaps at the end of the log",
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
"""The client's settings that the transport chooses, and why."""

_NAMES_OF_SECRETS = ("password", "secret", "passphrase", "key.pem")

C = TypeVar("C", Consumer, Producer, AdminClient)


class Errors:
    """What a client reports beside its answers: logged, and the last refusal kept."""

    def __init__(self) -> None:
        self.refusal: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Take one report; called by the client while it is polled."""
        if error.code() in {KafkaError._AUTHENTICATION, KafkaError._SSL}:  # noqa: SLF001 no other name
            self.refusal = error
        log.warning("%s", error.str())


def client_settings(client: Mapping[str, object]) -> dict[str, object]:
    """The user's settings for librdkafka, checked; secrets are masked wherever they are printed.

    Raises
    ------
    SettingsError
        A setting is the transport's own, or ``bootstrap.servers`` is missing.
    """
    settings = dict(client)
    for name, value in settings.items():
        if name in OWNED:
            raise SettingsError(f"`{name}` cannot be set: {OWNED[name]}.", "Remove it.")
        if "_" in name and name.replace("_", ".") in {*OWNED, "bootstrap.servers"}:
            hint = f"Did you mean `{name.replace('_', '.')}`?"
            raise SettingsError(f"`{name}` is not a setting of librdkafka.", hint)
        if isinstance(value, list | tuple):  # librdkafka writes lists with commas
            settings[name] = ",".join(map(str, value))
        elif isinstance(value, str) and any(word in name for word in _NAMES_OF_SECRETS):
            settings[name] = Secret(value)
    if not settings.get("bootstrap.servers"):
        raise SettingsError("`bootstrap.servers` is missing.", 'Name a broker, such as "localhost:9092".')
    return settings


def brokers(settings: Mapping[str, object]) -> str:
    """The bootstrap servers as one would write them in a message."""
    return str(settings["bootstrap.servers"])


def reason(error: KafkaException | KafkaError) -> str:
    """What the client says of an error, without a full stop."""
    told = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return (told.str() if isinstance(told, KafkaError) else str(told)).rstrip(".")


def build(kind: type[C], settings: Mapping[str, object], errors: Errors, **owned: object) -> C:
    """A client of librdkafka, which connects by itself in the background.

    Parameters
    ----------
    kind : type
        A consumer, a producer or an admin client.
    settings : mapping
        From `client_settings`.
    errors : Errors
        Told of what goes wrong beside answers.
    **owned
        The transport's own settings, ``_`` for each dot.

    Raises
    ------
    SettingsError
        The client refuses a setting.
    """
    if not log.handlers:
        # Without a handler of its own librdkafka's every reconnect would go to stderr.
        log.addHandler(logging.NullHandler())
    own = {name.replace("_", "."): value for name, value in owned.items()}
    # A producer, too, makes the topics it asks about, unless it is told not to.
    own |= {"allow.auto.create.topics": False, "error_cb": errors, "logger": log}
    try:
        return kind({**settings, **own})
    except (KafkaException, TypeError, ValueError) as error:
        what = reason(error) if isinstance(error, KafkaException) else str(error)
        hint = "See librdkafka's list of configuration properties."
        raise SettingsError(f"The Kafka client refuses its settings: {what}.", hint) from None


def cluster_id(admin: AdminClient, settings: Mapping[str, object], errors: Errors) -> str:
    """Wait until a broker answers; the cluster's id, empty where it has none.

    Raises
    ------
    TransportError
        The brokers refuse to let us in, or none answered within ``socket.connection.setup.timeout.ms``.
    """
    wait_ms = int(str(settings.get("socket.connection.setup.timeout.ms", CONNECT_TIMEOUT_MS)))
    deadline_s = time.monotonic() + wait_ms / 1000
    while True:
        left_s = deadline_s - time.monotonic()
        try:
            asked = admin.describe_cluster(request_timeout=max(min(STEP_S, left_s), 0.01))
            return str(asked.result().cluster_id or "")
        except KafkaException as error:
            admin.poll(0)
            if errors.refusal is not None:
                hint = "Check `security.protocol`, `sasl.mechanism`, the user, the password and certificates."
                what = f"Kafka at {brokers(settings)} refuses to let us in: {reason(errors.refusal)}."
                raise TransportError(what, hint) from None
            if time.monotonic() >= deadline_s:
                what = f"No Kafka broker answered at {brokers(settings)} within {wait_ms} ms."
                hint = "Check `bootstrap.servers`, the security settings, and that the broker runs."
                raise TransportError(what, hint) from error


def connected_admin(settings: Mapping[str, object]) -> AdminClient:
    """An admin client whose broker has answered.

    Raises
    ------
    SettingsError
        The client refuses a setting.
    TransportError
        No broker answered, or it refuses to let us in.
    """
    errors = Errors()
    admin = build(AdminClient, settings, errors)
    cluster_id(admin, settings, errors)
    return admin


@contextmanager
def translated(what: str, settings: Mapping[str, object]) -> Iterator[None]:
    """Turn the client's exceptions inside the block into a `TransportError` that begins with `what`."""
    try:
        yield
    except KafkaException as error:
        hint = "Check that the brokers run and what they log."
        raise TransportError(f"{what} failed at {brokers(settings)}: {reason(error)}.", hint) from error


def describe(
    admin: AdminClient, topics: Sequence[str], settings: Mapping[str, object]
) -> dict[str, TopicDescription]:
    """What the cluster says of each topic; one that does not exist is left out.

    Raises
    ------
    TransportError
        The brokers do not answer, or do not let us see a topic.
    """
    described = {}
    with translated("Looking up topics", settings):
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=REQUEST_TIMEOUT_S)
        for name, answer in asked.items():
            try:
                described[name] = answer.result()
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                if code in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_EXCEPTION}:
                    hint = "Check its name and the user's rights."
                    raise TransportError(f"Topic {name} cannot be used: {reason(error)}.", hint) from error
                raise
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
    found = describe(connected_admin(settings), topics, settings)
    return {name: len(topic.partitions) for name, topic in found.items()}


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
    admin = connected_admin(settings)
    wanted = [NewTopic(name, num_partitions=count) for name, count in topics.items()]
    for name, answer in admin.create_topics(wanted, request_timeout=REQUEST_TIMEOUT_S).items():
        try:
            answer.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                hint = "Choose another name, or ask for the right to create it."
                raise TransportError(f"Topic {name} cannot be created: {reason(error)}.", hint) from error
    deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
    while len(found := describe(admin, list(topics), settings)) < len(topics):
        if time.monotonic() >= deadline_s:
            lacking = ", ".join(sorted(topics.keys() - found.keys()))
            what = f"Topic {lacking} was created and is not seen after {REQUEST_TIMEOUT_S:.0f} s."
            raise TransportError(what, "Check what the brokers log.")
        time.sleep(0.05)
    check_partitions({name: len(topic.partitions) for name, topic in found.items()}, topics)
