"""A source that reads a file or standard input line by line, and sinks that append lines to a file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b

import orjson

from streamnb.base import Headers, Partition, RecordBatch, Start, Unreadable
from streamnb.errors import LinesError, PositionError, SettingsError, StorageError
from streamnb.storage import LineReader, first_line, open_append, open_lines

LINE_BYTES_MAX = 64 << 20  # a file without line ends must not fill the memory; no message is as long


class JsonlSource:
    """A `streamnb.base.protocols.Source` of a file's lines: one partition, whose offsets are line numbers.

    Line numbers start at 0 and count blank lines. If another process is still writing the last line, the
    part that is there is returned as a record.

    Parameters
    ----------
    path : str
        The file, or ``-`` for standard input. A name that ends with ``.gz`` is decompressed. Standard
        input resumes by skipping lines, so the same input must be given again.
    line_bytes_max : int
        The longest line in bytes; a longer one is reported as unreadable.
    """

    def __init__(self, path: str, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._path = path
        self._line_bytes_max = line_bytes_max
        self._partition = Partition(path, 0)
        self._reader: LineReader | None = None
        self._next_offset = 0

    def identity(self) -> Mapping[str, str]:
        """Return the file's path as given and a hash of its first line, which appending does not change.

        Standard input has no identity: the mapping is empty.
        """
        if self._path == "-":
            return {}
        line = first_line(self._path)
        if line is None:
            return {"file": self._path}
        return {"file": self._path, "hash of the first line": blake2b(line, digest_size=8).hexdigest()}

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Open the file and skip the lines before the position.

        Raises
        ------
        PositionError
            The file has fewer lines than the position, or the position belongs to another log.
        SettingsError
            `start` is not "earliest".
        DataError, StorageError
            The file cannot be read.
        """
        if start != "earliest":
            raise SettingsError(
                f"The file {self._path} cannot be read from `start = {start!r}`.",
                'A file has no timestamps and no newest record: set `start = "earliest"`.',
            )
        for partition in next_offsets:
            if partition != self._partition:
                raise PositionError(
                    f"The snapshot has a position in {partition}, but this input is {self._partition}.",
                    "Give the input that the snapshot was made from.",
                )
        self.close()
        self._reader = open_lines(self._path, self._line_bytes_max)
        wanted = next_offsets.get(self._partition, 0)
        self._next_offset = self._reader.skip(wanted)
        if self._next_offset < wanted:
            raise PositionError(
                f"{self._path} has {self._next_offset} lines, fewer than the snapshot's position {wanted}.",
                "Give the input that the snapshot was made from.",
            )
        return {self._partition: wanted}

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Return at most `records_max` lines, and fewer if a pipe has no more of them yet.

        Raises
        ------
        DataError, StorageError
            The rest of the file cannot be read.
        """
        assert self._reader is not None, "open() comes first"
        first = self._next_offset
        lines = self._reader.read_lines(records_max, timeout_ms)
        if not lines:
            return []
        self._next_offset += len(lines)
        offsets = list(range(first, self._next_offset))
        values: list[bytes | None] = [line for line in lines if isinstance(line, bytes)]
        unreadable: list[Unreadable] = []
        if len(values) < len(lines):
            named = list(zip(offsets, lines, strict=True))
            offsets = [offset for offset, line in named if isinstance(line, bytes)]
            unreadable = [
                Unreadable(offset, offset + 1, f"line of {line.bytes_total} bytes")
                for offset, line in named
                if not isinstance(line, bytes)
            ]
        n = len(values)
        return [
            RecordBatch(
                partition=self._partition,
                offsets=offsets,
                values=values,
                keys=[None] * n,
                timestamps_ms=[-1] * n,
                headers=[()] * n,
                next_offset=self._next_offset,
                unreadable=unreadable,
            )
        ]

    def added(self) -> Mapping[Partition, int]:
        """Return an empty mapping: a file never gains partitions."""
        return {}

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """Return ``None``: the number of lines is unknown before all are read."""
        return None

    def written_offsets(self) -> Mapping[Partition, int] | None:
        """Return ``None``, for the same reason."""
        return None

    def finished(self) -> bool:
        """Return whether `poll` has returned the last line; true at the latest after an empty `poll`."""
        return self._reader is not None and self._reader.ended

    @property
    def share_read(self) -> float | None:
        """The fraction of the file that was read, from 0 to 1; ``None`` if unknown, as for a pipe."""
        return None if self._reader is None else self._reader.share_read

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Do nothing: no tool measures the lag of a file."""

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class _LineSink:
    """The base class of both sinks: turns each storage error into a failed delivery.

    The appender fails every call after its first error, because the line it was writing may be torn.
    """

    def __init__(self, path: str) -> None:
        self._appender = open_append(path)

    def flush(self, timeout_ms: int) -> None:  # noqa: ARG002 - fsync has no timeout
        """Return when every line is on disk.

        Raises
        ------
        DeliveryError
            A line is not on disk; a `ReaderGoneError` if it was written to a pipe whose reader has exited.
        """
        with self._delivery():
            self._appender.sync()

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        with self._delivery():
            self._appender.close()

    def _write(self, lines: Sequence[bytes]) -> None:
        with self._delivery():
            self._appender.write(lines)

    @contextmanager
    def _delivery(self) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            raise LinesError(error.what, error.hint) from error


class JsonlSink(_LineSink):
    """A `streamnb.base.protocols.Sink` that appends each record's value as a line, without key and headers.

    Parameters
    ----------
    path : str
        A file to append to, or ``-`` for standard output.

    Raises
    ------
    SettingsError, StorageError
        The file cannot be opened for appending.
    """

    def publish(
        self,
        partition: int,  # noqa: ARG002 - a file has one partition
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],  # noqa: ARG002 - not written
        headers: Sequence[Headers],  # noqa: ARG002 - not written
    ) -> None:
        """Write each value, which must be one line of JSON, and a newline.

        Raises
        ------
        DeliveryError
            A line could not be written, now or earlier.
        """
        lines = [value for value in values if value is not None]
        assert len(lines) == len(values), "a tombstone cannot be written as a line"
        assert b"\n" not in b"".join(lines), "a value must not contain a newline"
        self._write(lines)


class JsonlDeadLetters(_LineSink):
    """A `streamnb.base.protocols.Sink` that appends each record as a line of JSON and keeps every byte.

    A line is ``{"headers": {name: text}, "key": base64 or null, "value": base64 or null}``. A header value
    that is not UTF-8 is ``{"base64": ...}`` instead of text, and a header name that occurs several times has
    a list of values. ``jq -r '.value // empty | @base64d'`` prints the values that are text;
    ``[base64.b64decode(json.loads(line)["value"] or "") for line in file]`` returns the exact bytes of all.

    Parameters
    ----------
    path : str
        A file to append to, or ``-`` for standard output.

    Raises
    ------
    SettingsError, StorageError
        The file cannot be opened for appending.
    """

    def publish(
        self,
        partition: int,  # noqa: ARG002 - the headers say where a record came from
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Write each record as one line of JSON.

        Raises
        ------
        DeliveryError
            A line could not be written, now or earlier.
        """
        self._write(
            [
                orjson.dumps({"headers": _readable(pairs), "key": _base64(key), "value": _base64(value)})
                for value, key, pairs in zip(values, keys, headers, strict=True)
            ]
        )


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _readable(headers: Headers) -> dict[str, object]:
    columns: dict[str, list[object]] = {}
    for name, value in headers:
        try:
            columns.setdefault(name, []).append(value.decode())
        except UnicodeDecodeError:
            columns.setdefault(name, []).append({"base64": _base64(value)})
    return {name: column[0] if len(column) == 1 else column for name, column in columns.items()}
