"""An embedded Kafka broker inside this process, for the demo and for tests that need no set-up.

It is the mock cluster of librdkafka, the C library inside the confluent-kafka wheel. librdkafka calls this
interface experimental and does not keep it stable between versions. For that reason pyproject.toml pins
confluent-kafka below its next major version, and this module uses only the nine functions below.

It supports producing, consuming, seeking and resuming by one consumer without a group.

It does not support transactions (their calls succeed without effect), group rebalances (a follower that
syncs late gets an error) or configurable retention. It keeps 5 MiB per partition, about 32,000 messages of
150 bytes, and drops the oldest records silently. It creates an unknown topic with four partitions as soon
as a client asks for it. Nothing survives `close`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib import metadata
from types import TracebackType
from typing import Self

from streamnb.errors import SettingsError, TransportError

_HINT = "Install it with: pip install 'streamnb[demo]'"
_PRODUCER = 0  # rd_kafka_type_t; the mock cluster needs a client handle, and a producer is the lighter one
_CONF_OK = 0  # rd_kafka_conf_res_t
_ERROR_BYTES = 512
# The limit for brokers and for partitions of a topic: librdkafka aborts the process if a number is too large.
_MOST = 1000

_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "rd_kafka_conf_new": (ctypes.c_void_p, []),
    "rd_kafka_conf_set": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t],
    ),
    "rd_kafka_new": (ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
    "rd_kafka_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_err2str": (ctypes.c_char_p, [ctypes.c_int]),
    "rd_kafka_mock_cluster_new": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
    "rd_kafka_mock_cluster_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_mock_cluster_bootstraps": (ctypes.c_char_p, [ctypes.c_void_p]),
    "rd_kafka_mock_topic_create": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int],
    ),
}


def load_librdkafka(distribution: str = "confluent-kafka") -> ctypes.CDLL:
    """Load the librdkafka inside an installed distribution and declare the functions used here.

    Parameters
    ----------
    distribution : str
        The name of the distribution.

    Returns
    -------
    ctypes.CDLL

    Raises
    ------
    SettingsError
        The distribution is not installed, contains no librdkafka, or contains an unusable one.
    """
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        what = f"The embedded broker needs {distribution}, which is not installed."
        raise SettingsError(what, _HINT) from None
    shared = [file for file in files if file.name.startswith("librdkafka") and ".so" in file.suffixes]
    if not shared:
        hint = f"Install its wheel: pip install --force-reinstall --only-binary :all: {distribution}"
        raise SettingsError(f"The installed {distribution} contains no librdkafka.", hint)
    path = str(shared[0].locate())
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise SettingsError(f"{path} cannot serve as the embedded broker: {error}.", _HINT) from error
    return library


class EmbeddedBroker:
    """A Kafka broker in this process, on a free loopback port, that runs until `close`.

    Parameters
    ----------
    topics : mapping of str to int
        The topics to create, each with its number of partitions, 1 to 1000.
    brokers : int
        The number of brokers, 1 to 1000. Every topic has one replica.

    Attributes
    ----------
    address : str
        ``127.0.0.1:port``; several brokers are separated by commas.
    client : mapping of str to object
        The settings with which kafka-python connects to this broker. They fix ``api_version``, because the
        mock cannot answer the ApiVersions request of kafka-python 3. Do not set it for a real broker.

    Raises
    ------
    ValueError
        The number of brokers, or of a topic's partitions, is out of range.
    SettingsError
        confluent-kafka is not installed, or contains no usable librdkafka.
    TransportError
        The broker could not be started, or a topic could not be created.

    Examples
    --------
    >>> with EmbeddedBroker({"mail": 2}) as broker:
    ...     broker.address.rpartition(":")[0]
    '127.0.0.1'
    """

    def __init__(self, topics: Mapping[str, int], brokers: int = 1) -> None:
        if not 1 <= brokers <= _MOST:
            raise ValueError(f"an embedded cluster has 1 to {_MOST} brokers, not {brokers}")
        for topic, partitions in topics.items():
            if not 1 <= partitions <= _MOST:
                raise ValueError(f"topic {topic!r} can have 1 to {_MOST} partitions here, not {partitions}")
        self._library = load_librdkafka()
        self._handle: int | None = None
        self._cluster: int | None = None
        try:
            self._start(brokers)
            for topic, partitions in topics.items():
                self._create(topic, partitions)
        except TransportError:
            self.close()
            raise
        self.address: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self.client: Mapping[str, object] = {"bootstrap_servers": self.address, "api_version": (2, 3)}

    def _start(self, brokers: int) -> None:
        library, error = self._library, ctypes.create_string_buffer(_ERROR_BYTES)
        settings = library.rd_kafka_conf_new()
        # The client that hosts the mock cluster has no broker of its own and would warn about it on stderr.
        done = library.rd_kafka_conf_set(settings, b"log_level", b"0", error, _ERROR_BYTES)
        assert done == _CONF_OK, error.value
        self._handle = library.rd_kafka_new(_PRODUCER, settings, error, _ERROR_BYTES)
        if not self._handle:
            raise TransportError(f"The embedded broker did not start: {error.value.decode()}.")
        self._cluster = library.rd_kafka_mock_cluster_new(self._handle, brokers)
        if not self._cluster:
            raise TransportError(
                f"The embedded broker did not start its {brokers} broker(s).",
                "Check that the loopback interface is up and that file descriptors are left.",
            )

    def _create(self, topic: str, partitions: int) -> None:
        code = self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)
        if code:
            cause = self._library.rd_kafka_err2str(code).decode()
            raise TransportError(
                f"The embedded broker did not create topic {topic!r} with {partitions} partition(s): {cause}."
            )

    def close(self) -> None:
        """Stop the broker, free its port and drop its records. Closing twice does nothing."""
        if self._cluster:
            self._library.rd_kafka_mock_cluster_destroy(self._cluster)
            self._cluster = None
        if self._handle:
            self._library.rd_kafka_destroy(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
