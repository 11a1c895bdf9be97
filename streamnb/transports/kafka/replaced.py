"""The names of kafka-python that this transport replaces, checked before a client is made.

A name that is only read fails loudly once it is gone. A name that is assigned, or a method that is
overridden, would go on existing here while the client calls another one: a protection would be gone without a
word. So each such name must be the client's own.

Without the names by which rows are appended to a batch (`APPENDED`), records are sent one by one: `rows.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import kafka
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import Fetcher
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.transaction_manager import TransactionManager
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder

from streamnb.errors import SettingsError

REPLACED: Mapping[type, tuple[str, ...]] = {
    Fetcher: ("PartitionRecords", "_append", "_create_fetch_requests", "_send_list_offsets_requests"),
    Fetcher.PartitionRecords: ("take", "_unpack_records", "_maybe_raise_next_inline_exception"),
    DefaultRecordBatch: ("_buffer", "_decompressed", "_next_record_index", "_num_records", "_pos"),
    KafkaConnectionManager: ("_connect", "_build_transport", "update_backoff"),
    KafkaNetClient: ("await_ready", "close", "connection_delay"),
    KafkaTCPTransport: ("_sock_recv",),
    KafkaSSLTransport: ("_sock_recv",),
    ClusterMetadata: ("refresh_metadata",),
    TransactionManager: (
        "classify_batch_error",
        "maybe_add_partition_to_transaction",
        "next_request_handler",
    ),
}
"""Methods and classes that are assigned or overridden, by the class that has them."""

SET: Mapping[type, tuple[str, ...]] = {
    Fetcher: ("fetch_max_wait_ms", "max_partition_fetch_bytes"),
    KafkaConnectionManager: ("socket_connection_setup_timeout_max_ms",),
    ClusterMetadata: ("allow_auto_create_topics",),
    Sender: ("retry_backoff_ms",),
}
"""Settings that are changed on the object that reads them, because the client does not pass them on."""

APPENDED: Mapping[type, tuple[str, ...]] = {
    RecordAccumulator: ("_appends_in_progress", "_batches", "_closed", "_tp_lock", "split_and_reenqueue"),
    ProducerBatch: ("_record_futures", "last_append", "max_record_size", "produce_future", "records"),
    MemoryRecordsBuilder: ("_builder", "_closed", "_next_offset", "is_full", "next_offset"),
    DefaultRecordBatchBuilder: (
        "_batch_size",
        "_buffer",
        "_first_timestamp",
        "_last_offset",
        "_max_timestamp",
        "_num_records",
    ),
    FutureRecordMetadata: ("rebind",),
}
"""What appending rows to an open batch reads and assigns, by the class whose objects have it."""

APPENDING = ("_accumulator", "_closed", "_metadata", "_sender", "_transaction_manager")
"""What it reads of the producer."""


@cache
def check_replaced() -> None:
    """Check that kafka-python has every name that this transport replaces; once is enough.

    Raises
    ------
    SettingsError
        It lacks one: it is another version than the one that the replacements were made for.
    """
    lacking = [
        f"{owner.__qualname__}.{name}"
        for owner, names in REPLACED.items()
        for name in names
        if not hasattr(owner, name)
    ]
    lacking += [
        f"{owner.__qualname__}.config[{name!r}]"
        for owner, names in SET.items()
        for name in names
        if name not in owner.DEFAULT_CONFIG  # type: ignore[attr-defined]
    ]
    if lacking:
        raise SettingsError(
            f"kafka-python {kafka.__version__} lacks {', '.join(lacking)}, which streamnb replaces.",
            "Install the version that streamnb was tested with: pip install 'kafka-python==3.0.12'.",
        )
