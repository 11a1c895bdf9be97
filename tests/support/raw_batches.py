"""Kafka record batches built by hand, and sent as they are: what no client's producer would make."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

from crc32c import crc32c
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
_ENCODE = {"gzip": gzip_encode, "snappy": snappy_encode, "lz4": lz4_encode, "zstd": zstd_encode}
PRODUCE, PRODUCE_VERSION, ALL_REPLICAS, TIMEOUT_MS = 0, 7, -1, 30_000
NOT_YET = {3, 5, 6}  # no such topic, no leader, not the leader: a new topic's partition answers so at first
NOT_YET_S = 30.0


def varint(number: int) -> bytes:
    """Return a number as Kafka's records hold it."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(0x80 | left & 0x7F)
        left >>= 7
    out.append(left)
    return bytes(out)


def raw_record(
    delta: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    after_ms: int = 0,
    n_headers: int = 0,
    header: bytes = b"\0\0",
) -> bytes:
    """Return one record of a batch.

    Parameters
    ----------
    delta : int
        Its offset, from that of the batch.
    value, key : bytes or None
    after_ms : int
        Its timestamp, from the first one of the batch.
    n_headers : int
        How many headers it has, all the same.
    header : bytes
        One header, encoded; by default its name and its value are empty.
    """
    body = b"".join((b"\0", varint(after_ms), varint(delta), _sized(key), _sized(value), varint(n_headers)))
    return varint(len(body) + n_headers * len(header)) + body + header * n_headers


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def raw_batch(
    records: Sequence[bytes],
    codec: str = "none",
    *,
    first_ms: int = 0,
    max_ms: int = 0,
    base_offset: int = 0,
    attributes: int = 0,
    producer: int = -1,
    last_delta: int | None = None,
    count: int | None = None,
) -> bytes:
    """Return a batch of records, with a valid checksum.

    Parameters
    ----------
    records : sequence of bytes
    codec : str
        A key of `CODECS`.
    first_ms, max_ms : int
    base_offset : int
    attributes : int
        Added to the codec: `APPEND_TIME`, `TRANSACTIONAL`, `CONTROL`.
    producer : int
        The producer's id.
    last_delta, count : int, optional
        The last offset, from the first, and the number of records; by default what `records` has.
    """
    packed = b"".join(records)
    if codec != "none":
        packed = _ENCODE[codec](packed)
    n = len(records) if count is None else count
    last = len(records) - 1 if last_delta is None else last_delta
    tail = struct.pack(">hiqqqhii", CODECS[codec] | attributes, last, first_ms, max_ms, producer, -1, -1, n)
    tail += packed
    return struct.pack(">qiibI", base_offset, len(tail) + 9, -1, 2, crc32c(tail)) + tail


class RawProducer:
    """A connection to a broker that leads all partitions, over which batches are sent unchecked.

    Parameters
    ----------
    address : str
        Host and port.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)

    def send(self, topic: str, batch: bytes, partition: int = 0) -> None:
        """Send a batch and wait for the answer, again while a new topic's partition has no leader.

        Raises
        ------
        ValueError
            The broker refused it; the error has Kafka's code.
        """
        give_up_at = time.monotonic() + NOT_YET_S
        while code := self._send_once(topic, batch, partition):
            if code not in NOT_YET or time.monotonic() > give_up_at:
                raise ValueError(
                    f"the broker refused a batch of {len(batch):,} bytes for {topic}: error {code}"
                )
            time.sleep(0.05)

    def _send_once(self, topic: str, batch: bytes, partition: int) -> int:
        """Send a batch and return the code of the broker's answer: 0 if it was written."""
        name = topic.encode()
        request = (
            struct.pack(">hhihhhi", PRODUCE, PRODUCE_VERSION, 0, -1, -1, ALL_REPLICAS, TIMEOUT_MS)
            + struct.pack(f">ih{len(name)}s", 1, len(name), name)
            + struct.pack(">iii", 1, partition, len(batch))
            + batch
        )
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._read(4))
        answer = self._read(size)
        # Correlation id, number of topics, name, number of partitions, partition; then the code.
        (code,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name) + 4 + 4)
        return int(code)

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            if not (more := self._socket.recv(size - len(found))):
                raise ConnectionError("the broker closed the connection")
            found += more
        return found

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
