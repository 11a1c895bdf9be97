# The compiled twin of `streamnb.transports.kafka.batches`.
from typing import TypeAlias

from streamnb.base import Headers

Cut: TypeAlias = tuple[
    list[int], list[bytes | None], list[bytes | None], list[int], list[Headers], int, int, int, int, int
]

def cut(
    buffer: bytes | bytearray,
    at: int,
    left: int,
    base_offset: int,
    base_ms: int,
    same_ms: bool,
    first_offset: int,
    records_max: int,
    bytes_max: int,
    header_bytes: int,
    headers_max: int,
) -> Cut | None: ...
