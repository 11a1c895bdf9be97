# Compiled: what the sink does for each row by the client's own `send`, for many rows in one call.
from kafka.record.memory_records import MemoryRecordsBuilder

from streamnb.base import Headers

def append_rows(
    records: MemoryRecordsBuilder,
    values: list[bytes | None],
    keys: list[bytes | None],
    headers: list[Headers],
    begin: int,
    rows_max: int,
    bytes_max: int,
    record_bytes_max: int,
    timestamp_ms: int,
) -> tuple[int, int, int]: ...
