"""librdkafka's idempotent producer: its settings, and what its errors mean for records and learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamnb.transports.confluent.client import Errors, build, reason
from streamnb.transports.topics import LINGER_MS, log
from streamnb.transports.topics import TOO_LARGE_HINT as SIZE_HINT

from confluent_kafka import KafkaError, KafkaException, Message, Producer  # isort: skip  as in source.py

CLOSE_TIMEOUT_S = 1.0

# librdkafka does not split a batch that the broker refuses.
TOO_LARGE_HINT = f"{SIZE_HINT} For a topic that takes less than 1 MB, set `batch.size` in `[confluent]` too."

Report = Callable[[KafkaError | None, Message], None]
"""What is called with the outcome of a delivery."""

# ruff: noqa: SLF001  the names of librdkafka's local errors begin with an underscore
_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}


def error_of(error: KafkaException | KafkaError) -> KafkaError | None:
    """Return the error that an exception of the client carries, if it is one of librdkafka's."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return inner if isinstance(inner, KafkaError) else None


def is_fenced(error: KafkaException | KafkaError) -> bool:
    """Return whether the broker has fenced the producer."""
    inner = error_of(error)
    return inner is not None and inner.code() in _FENCED


def is_too_large(error: KafkaException | KafkaError) -> bool:
    """Return whether the client or the broker refuses a record for its size."""
    inner = error_of(error)
    return inner is not None and inner.code() == KafkaError.MSG_SIZE_TOO_LARGE


def new_producer(
    settings: Mapping[str, object],
    report: Report,
    *,
    in_flight_max: int,
    in_flight_bytes_max: int,
    delivery_timeout_ms: int,
    **owned: object,
) -> Producer:
    """Return an idempotent producer that waits for all in-sync replicas, and connects in the background.

    Its batches have librdkafka's own limit, 1 MB. While full ones wait, for one of the five requests on their
    way or for their partition to join the transaction, librdkafka 2.16 spins: with batches of 256 KiB a
    record took two to three times the processor time.

    It calls `report` from `poll` and `flush`, for failed deliveries only, so that a delivered record costs no
    Python call.

    Raises
    ------
    SettingsError
        The client rejects a setting.
    """
    return build(
        Producer,
        {"linger.ms": LINGER_MS, **settings, "on_delivery": report},
        Errors(),
        acks="all",
        enable_idempotence=True,
        delivery_timeout_ms=delivery_timeout_ms,
        queue_buffering_max_messages=in_flight_max,
        queue_buffering_max_kbytes=-(-in_flight_bytes_max // 1024),
        delivery_report_only_error=True,
        **owned,
    )


def drop(producer: Producer, of: str) -> None:
    """Drop the records in flight, which were never flushed, so that nothing waits for them."""
    if len(producer):
        producer.purge()
        try:
            producer.flush(CLOSE_TIMEOUT_S)
        except KafkaException as error:  # must not replace the error for which the producer is closed
            log.warning(
                "The producer for %s did not close in time; records in flight are dropped: %s",
                of,
                reason(error),
            )
