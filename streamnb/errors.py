"""Every error streamnb raises: a shallow tree, by who can act on it.

An error is one sentence of fact and one hint. `str(error)` prints both, and a command line shows them
without a traceback. A programmer's mistake in the Python API stays a ``ValueError`` or ``TypeError``.
"""

from __future__ import annotations

from collections.abc import Mapping


class StreamnbError(Exception):
    """Something an operator or a caller can act on.

    Parameters
    ----------
    what : str
        One sentence: what was found, with the path, line, topic or offset.
    hint : str
        What to do about it.

    Examples
    --------
    >>> print(SettingsError("`engine.pol` is not a setting.", "Did you mean `engine.poll_timeout_ms`?"))
    `engine.pol` is not a setting. Did you mean `engine.poll_timeout_ms`?
    """

    exit_code = 1

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what} {self.hint}".rstrip()


class SettingsError(StreamnbError):
    """A setting is unknown, of the wrong type or contradicts another: nothing was started."""

    exit_code = 2


class DataError(StreamnbError):
    """A whole input cannot be used (a single bad record is a `RecordError` and the stream goes on)."""

    exit_code = 65


class TransportError(StreamnbError):
    """The broker or the stream behind a source or sink cannot be used."""

    exit_code = 69


class PositionError(TransportError):
    """The stream does not hold the position to resume from; records may have been lost.

    Parameters
    ----------
    what, hint : str
    resume : mapping of (topic, number) to int or None
        Where each partition that lost records could go on, ``None`` for one that is gone; empty where no
        setting can allow it.
    """

    def __init__(
        self, what: str, hint: str = "", resume: Mapping[tuple[str, int], int | None] | None = None
    ) -> None:
        super().__init__(what, hint)
        self.resume = dict(resume or {})


class DeliveryError(TransportError):
    """A score or dead letter was not acknowledged; no snapshot may be taken."""


class TransactionError(DeliveryError):
    """What became of a transaction is not known: only starting again from the last snapshot finds out."""


class FencedError(DeliveryError):
    """Another learner has taken this one's place, and nothing of this one's is taken any more."""


class StorageError(StreamnbError):
    """The disk refused."""

    exit_code = 74


class SnapshotError(StorageError):
    """A snapshot cannot be read: torn, foreign, of another version or of another model."""


class AccountingError(StreamnbError):
    """Offsets passed are not offsets accounted for: a defect of streamnb, and no snapshot may hold it."""

    exit_code = 70


class DeadlineError(StreamnbError):
    """A stop took longer than `engine.stop_deadline_s`; the last snapshot stays in force."""

    exit_code = 75


class RecordError(StreamnbError):
    """One record cannot be used and becomes a dead letter.

    Parameters
    ----------
    reason : str
        One of `REASONS`: the word in the dead letter's header and in the metrics.
    what : str
        One sentence of fact.
    """

    REASONS = (
        "encoding",  # not UTF-8
        "json_syntax",  # not one JSON document
        "lone_surrogate",  # half of a UTF-16 pair
        "too_deep",  # nested past the parser's bound
        "number_range",  # infinite, not a number, or past 2^53 in an id
        "schema",  # a field of the wrong type
        "schema_registry",  # the framing of a schema registry, not JSON
        "missing_text",  # none of the fields that make a message
        "oversized",  # more bytes than `message.bytes_max`
        "label",  # empty, or of a type that `[labels]` does not map
        "class_limit",  # a label past `model.classes_max`
        "tombstone",  # a record without a value
        "unreadable",  # the client could not take it from its batch
    )

    def __init__(self, reason: str, what: str) -> None:
        assert reason in self.REASONS, reason
        super().__init__(what)
        self.reason = reason
