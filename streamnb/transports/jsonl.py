"""JSON lines as a log: a file or standard input in, a file or standard output out."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import orjson

from streamnb.base import Headers, Partition, RecordBatch, Start, Unreadable
from streamnb.errors import DeliveryError, PositionError, SettingsError, StorageError
from streamnb.storage import LineReader, open_append, open_lines


class JsonlSource:
    """A file's lines behind `streamnb.base.protocols.Source`: one partition, a line's number its offset.

    Lines are counted from 0, blank ones too. A last line that is still being written when it is read is
    taken as it stands.

    Parameters
    ----------
    path : str
        The file, ``.gz`` to decompress it, or ``-`` for standard input. Standard input is resumed by
        skipping as many lines: it must be the same input again.
    line_bytes_max : int
        A longer line is reported as unreadable.
    """

    def __init__(self, path: str, line_bytes_max: int) -> None:
        self._path = path
        self._line_bytes_max = line_bytes_max
        self._partition = Partition(path, 0)
        self._reader: LineReader | None = None
        self._next_offset = 0

    def identity(self) -> Mapping[str, str]:
        """The file's path as it was given; nothing for standard input."""
        return {} if self._path == "-" else {"file": self._path}

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Open the file and skip to the position.

        Raises
        ------
        PositionError
            The file is shorter, or the position is of another log.
        SettingsError
            `start` is not "earliest".
        DataError, StorageError
            The file cannot be read.
        """
        if start != "earliest":
            raise SettingsError(
                f"The file {self._path} cannot be read from `start = {start!r}`.",
                'A file has no time and no newest record: set `start = "earliest"`.',
            )
        for partition in next_offsets:
            if partition != self._partition:
                raise PositionError(
                    f"The snapshot has a position in {partition}, and this is {self._partition}.",
                    "Is this the input that the snapshot was made from?",
                )
        self.close()
        self._reader = open_lines(self._path, self._line_bytes_max)
        wanted = next_offsets.get(self._partition, 0)
        self._next_offset = self._reader.skip(wanted)
        if self._next_offset < wanted:
            raise PositionError(
                f"{self._path} has {self._next_offset} lines, fewer than the position {wanted}.",
                "Is this the input that the snapshot was made from?",
            )
        return {self._partition: wanted}

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """At most `records_max` lines; fewer where a pipe has no more of them yet.

        Raises
        ------
        DataError, StorageError
            The file cannot be read further.
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
        """None: a file is one partition."""
        return {}

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """Unknown: a file does not say how many lines it has."""
        return None

    def finished(self) -> bool:
        """Whether the last line was returned; known at the latest after an empty `poll`."""
        return self._reader is not None and self._reader.ended

    @property
    def share_read(self) -> float | None:
        """How much of the file was read, from 0 to 1; ``None`` where nobody can know."""
        return None if self._reader is None else self._reader.share_read

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Do nothing: nobody watches a file's lag."""

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class _Lines:
    """What both sinks share: an appender whose every refusal is a failed delivery, for ever after."""

    def __init__(self, path: str) -> None:
        self._appender = open_append(path)

    def flush(self, timeout_ms: int) -> None:  # noqa: ARG002 - the disk takes the time it takes
        """Return when every line is on the disk.

        Raises
        ------
        DeliveryError
            One is not; with a `BrokenPipeError` as its cause where a pipe's reader has gone.
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
            raise DeliveryError(error.what, error.hint) from error


class JsonlSink(_Lines):
    """Records' values as lines, behind `streamnb.base.protocols.Sink`; keys and headers are left out.

    Parameters
    ----------
    path : str
        A file to append to, or ``-`` for standard output.

    Raises
    ------
    SettingsError, StorageError
        It cannot be opened for appending.
    """

    def publish(
        self,
        partition: int,  # noqa: ARG002 - a file has one
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],  # noqa: ARG002 - a line has none
        headers: Sequence[Headers],  # noqa: ARG002 - a line has none
    ) -> None:
        """Write each value, one line of JSON, and a newline.

        Raises
        ------
        DeliveryError
            A line could not be written, now or earlier.
        """
        lines = [value for value in values if value is not None]
        assert len(lines) == len(values), "a tombstone is no line"
        assert b"\n" not in b"".join(lines), "a value with a newline is no line"
        self._write(lines)


class JsonlDeadLetters(_Lines):
    """Whole records as lines, their bytes unchanged, behind `streamnb.base.protocols.Sink`.

    A line is ``{"headers": {name: text}, "key": base64 or null, "value": base64 or null}``. A header that is
    not UTF-8 is ``{"base64": ...}`` in the place of its text, and a name that stands several times has a list
    of them. The values come back, one after the other, with ``jq -r '.value // empty | @base64d'``, and with
    their exact bytes, whatever they are, with
    ``[base64.b64decode(json.loads(line)["value"] or "") for line in file]``.

    Parameters
    ----------
    path : str
        A file to append to, or ``-`` for standard output.

    Raises
    ------
    SettingsError, StorageError
        It cannot be opened for appending.
    """

    def publish(
        self,
        partition: int,  # noqa: ARG002 - the headers say where a record came from
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Write each record as a line.

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
