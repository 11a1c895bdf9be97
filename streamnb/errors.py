"""All errors that streamnb raises, in a shallow tree: one class for each kind of action they call for.

An error is one sentence of fact and one hint. `str(error)` joins both, and the command line prints them
without a traceback. A programming mistake in the Python API raises a ``ValueError`` or ``TypeError`` instead.
"""

from __future__ import annotations

from collections.abc import Mapping


class StreamnbError(Exception):
    """An error that an operator or a caller can act on.

    Parameters
    ----------
    what : str
        One sentence that states the fact, with the path, line, topic or offset.
    hint : str
        What to do about it.

    Examples
    --------
    >>> print(SettingsError("`engine.pol` is not a setting.", "Did you mean `engine.poll_timeout_ms`?"))
    `engine.pol` is not a setting. Did you mean `engine.poll_timeout_ms`?
    """

    exit_code = 70

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what} {self.hint}".rstrip()


class SettingsError(StreamnbError):
    """A setting is unknown, has the wrong type or contradicts another one; nothing was started."""

    exit_code = 2


class DataError(StreamnbError):
    """A whole input cannot be used. (A single bad record is a `RecordError`, and the stream continues.)"""

    exit_code = 65


class TransportError(StreamnbError):
    """The broker or log behind a source or sink cannot be used."""

    exit_code = 69


class MissingTopicError(TransportError):
    """A topic does not exist, or exists no longer."""


class PositionError(TransportError):
    """The log no longer holds the position to resume from, so records may have been lost.

    Parameters
    ----------
    what, hint : str
    resume : mapping of (topic, number) to int or None
        The offset at which each partition that lost records could continue, or ``None`` if the partition no
        longer exists. Empty if no setting can allow continuing.
    """

    def __init__(
        self, what: str, hint: str = "", resume: Mapping[tuple[str, int], int | None] | None = None
    ) -> None:
        super().__init__(what, hint)
        self.resume = dict(resume or {})


class PositionLostError(PositionError):
    """The log dropped the position while it was read; opening the log again finds out where it continues."""


class DeliveryError(TransportError):
    """A score or dead letter was not delivered, so no snapshot may be taken."""


class ReaderGoneError(DeliveryError):
    """The program that read the output has exited, as ``head`` does; the command ends quietly."""

    exit_code = 0


class TransactionError(DeliveryError):
    """It is unknown whether a transaction was committed; a restart from the last snapshot finds out."""


class TooLargeError(DeliveryError):
    """A record is larger than the client may send or the topic takes, so a restart would fail on it again."""

    exit_code = 2


class LinesError(DeliveryError):
    """A score or dead letter could not be written to a file, as when its disk is full."""

    exit_code = 74


class FencedError(DeliveryError):
    """Another learner has taken over, so nothing that this learner writes is accepted any more."""


class StorageError(StreamnbError):
    """A file or directory cannot be used: the operating system refused it, or another learner holds it."""

    exit_code = 74


class PathError(StorageError):
    """A path that was given cannot be used: it is missing, of another kind, or not open to this user."""

    exit_code = 2


class SnapshotError(StorageError):
    """A snapshot cannot be used: it is damaged, not a snapshot, or from another version or model."""


class MismatchError(SnapshotError):
    """A snapshot was made with other settings, which give its counts another meaning."""

    exit_code = 2


class DefectError(StreamnbError):
    """A defect of streamnb, such as an exception that nothing expects."""


class AccountingError(DefectError):
    """The accounts do not add up: streamnb lost or double-counted records. No snapshot may be taken."""


class DeadlineError(StreamnbError):
    """Stopping took longer than `engine.stop_deadline_s`; the last snapshot stays in force."""

    exit_code = 75


class RecordError(StreamnbError):
    """One record cannot be used and becomes a dead letter.

    Parameters
    ----------
    reason : str
        One of `REASONS`; the dead letter's header and the metrics use the same word.
    what : str
        One sentence that states the fact.
    """

    exit_code = 65

    REASONS = (
        "encoding",  # not UTF-8
        "json_syntax",  # not one JSON document
        "lone_surrogate",  # half of a UTF-16 pair
        "too_deep",  # nested deeper than the JSON parser allows
        "number_range",  # infinite, not a number, out of a field's range, or an id past 2^53
        "schema",  # not a JSON object, or a field of the wrong type
        "schema_registry",  # framed for a schema registry, not plain JSON
        "missing_text",  # none of the fields that make a message
        "oversized",  # more bytes than `message.bytes_max`, or a key longer than 65,536
        "headers",  # more than 1,000 headers
        "own_output",  # a label in a record that streamnb wrote
        "label",  # empty, too long, with a control character, or of a type that is not mapped
        "class_limit",  # a new class past `model.classes_max`
        "tombstone",  # a record without a value
        "unreadable",  # the client could not extract it from the log
    )

    def __init__(self, reason: str, what: str) -> None:
        assert reason in self.REASONS, reason
        super().__init__(what)
        self.reason = reason
