"""Read a file of messages in batches: the history that commands learn from, evaluate or score."""

from __future__ import annotations

from collections.abc import Iterator

from streamnb.base import Batch, RecordBatch
from streamnb.config import Settings, build_decoder, build_model, check_lines
from streamnb.errors import DataError, SettingsError
from streamnb.naive_bayes import NaiveBayes
from streamnb.storage import place_of
from streamnb.transports.jsonl import JsonlSource
from streamnb.wire import Decoder, Messages


class History:
    """Reads a file of JSON lines in batches, and counts the lines that are not usable messages.

    Parameters
    ----------
    path : str
        ``-`` is standard input; a ``.gz`` file is decompressed.
    decoder : Decoder
    limit : int, optional
        Read at most this many lines.

    Attributes
    ----------
    read, refused : int
        Lines read so far, and those of them that hold no usable message.
    share_read : float or None
        The share of the input read so far, from 0 to 1; ``None`` if the size of the input is unknown.
    first_refusal : str
        Path, line and fault of the first refused line; empty if there is none.

    Raises
    ------
    StreamnbError
        The file cannot be read.
    """

    def __init__(self, path: str, decoder: Decoder, limit: int | None = None) -> None:
        self.path = path
        self.name = "standard input" if path == "-" else path
        self.read = 0
        self.refused = 0
        self.share_read: float | None = None
        self.first_refusal = ""
        self._decoder = decoder
        self._limit = limit

    def batches(self, size: int = 1000) -> Iterator[tuple[RecordBatch, Messages]]:
        """Yield the records and the messages decoded from them, at most `size` lines at a time.

        Raises
        ------
        DataError
            The file has lines, but none of them is a usable message.
        SettingsError
            Standard output is the file, so that it would never end.
        """
        place = place_of(self.path, 0)
        if place is not None and place == place_of("-", 1):
            raise SettingsError(
                f"Standard output is appended to the input, {self.path}.", "Redirect it to another file."
            )
        source = JsonlSource(self.path)
        try:
            source.open({}, "earliest")
            while not source.finished() and self.read != self._limit:
                wanted = size if self._limit is None else min(size, self._limit - self.read)
                for records in source.poll(wanted, 200):
                    messages = self._decoder.decode(records)
                    self._count(records, messages)
                    by_limit = None if self._limit is None else self.read / self._limit
                    self.share_read = max(
                        (s for s in (by_limit, source.share_read) if s is not None), default=None
                    )
                    yield records, messages
        finally:
            source.close()
        if self.read and self.refused == self.read:
            raise DataError(
                f"No line of {self.name} is a usable message ({self.read} read). {self.first_refusal}",
                "Check that `[message]` and `[message.label_values]` of the configuration fit this file.",
            )

    def check_labelled(self, labelled: int, to_do: str) -> None:
        """Check that some line has a label.

        Parameters
        ----------
        labelled : int
            Number of lines with a label.
        to_do : str
            What the labels are for: "judge".

        Raises
        ------
        DataError
            None has.
        """
        if not labelled:
            raise DataError(
                f"None of the {self.read} lines of {self.name} has a label, so there is nothing to {to_do}.",
                "Set `message.label` of the configuration to the field that holds the label.",
            )

    def _count(self, records: RecordBatch, messages: Messages) -> None:
        unreadable = [(span.first_offset, span.cause) for span in records.unreadable]
        refused = [(records.offsets[row], error.what) for row, error in messages.refused]
        self.read += len(records) + len(unreadable)
        self.refused += len(refused) + len(unreadable)
        if not self.first_refusal and (refused or unreadable):
            offset, what = min(refused + unreadable)
            self.first_refusal = f"{self.name}, line {offset + 1}: {what}"


def batches_of(history: History, size: int = 1000) -> Iterator[Batch]:
    """Return the batches of a history, of at most `size` lines each."""
    return (messages.batch for _, messages in history.batches(size))


def model_and_history(settings: Settings, path: str, limit: int | None = None) -> tuple[NaiveBayes, History]:
    """Build the model of some settings and the history that it is to learn.

    Raises
    ------
    SettingsError
        The settings need something that lines of a file do not have, such as timestamps.
    """
    check_lines(settings)
    return build_model(settings), History(path, build_decoder(settings), limit)
