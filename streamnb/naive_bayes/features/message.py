"""`Message`: one message of a batch, as readers see it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from streamnb.naive_bayes.features.tokenizer import Text, Tokenizer
from streamnb.naive_bayes.features.values import mapping_of, text_of, unnamed_values, value_at


class Message:
    """One message of a batch: the values of its fields, and its texts split into tokens.

    A text is split once, however many readers read it.

    Parameters
    ----------
    columns : mapping of str to sequence
        The fields of the batch, each as the column of its values.
    i : int
        Which message of the batch.
    tokenizer : Tokenizer
    named : collection of str
        The fields that some reader of the model names. A block reader that names none reads all others.

    Examples
    --------
    >>> message = Message({"text": ["win money", "lunch"], "price": [9.5, None]}, 0, Tokenizer())
    >>> message.value("price"), message.text(("text",)).tokens
    (9.5, ['win', 'money'])
    """

    __slots__ = ("_characters", "_texts", "columns", "i", "named", "tokenizer")

    def __init__(
        self,
        columns: Mapping[str, Sequence[object]],
        i: int,
        tokenizer: Tokenizer,
        named: Collection[str] = (),
    ) -> None:
        self.columns = columns
        self.i = i
        self.tokenizer = tokenizer
        self.named = named
        self._texts: dict[tuple[str, ...], Text] = {}
        self._characters: dict[str, int] = {}

    def value(self, field: str) -> object:
        """Return the value of a field; ``None`` if the batch has no such field."""
        return value_at(self.columns, field, self.i)

    def text(self, fields: tuple[str, ...]) -> Text:
        """Return the named fields as one text, one line per field, split into tokens.

        Raises
        ------
        ValueError
            A field holds a value that is not text.
        """
        found = self._texts.get(fields)
        if found is None:
            joined = text_of(fields, self.columns, self.i, self._characters)
            found = self._texts[fields] = self.tokenizer.read(joined)
        return found

    def values(self, field: str, fields: tuple[str, ...], kind: str) -> Iterator[tuple[str, object]]:
        """Return names and values for a block reader, without the missing values.

        Parameters
        ----------
        field : str
            The field that holds a mapping of names to values, or "".
        fields : tuple of str
            The fields to read, each a name with a value, or ().
        kind : {"category", "flag", "number"}
            If neither is given, all fields that no reader names and that hold a value of this kind are read.

        Raises
        ------
        ValueError
            Two names are equal as text, a name holds half of a surrogate pair, or no block reads the type of
            a value.
        """
        if fields:
            return mapping_of({name: self.value(name) for name in fields})
        if field:
            return mapping_of(self.value(field), field)
        return unnamed_values(self.columns, self.i, self.named, kind)

    @property
    def length(self) -> float:
        """``ln(1 + code points)`` of the text fields that were read, together."""
        return math.log(1.0 + sum(self._characters.values()))

    @property
    def is_truncated(self) -> bool:
        """Whether a limit cut a token or the list of tokens of a text."""
        return any(text.truncated for text in self._texts.values())

    @property
    def is_empty(self) -> bool:
        """Whether texts were read and none of them has a token."""
        return bool(self._texts) and not any(text.tokens for text in self._texts.values())
