"""Readers: the settings that say which fields of a message a view reads, and which features it makes of them.

Text readers (`Words`, `WordPairs`, `CharacterGrams`, `Ends`) count the tokens of text fields, or features
made of the tokens. `Terms`, `Category` and `Number` read one field that holds term counts, a category or a
number.

Block readers (`Categories`, `Flags`, `Numbers`) read named values; the names need not be known in advance.
Each block reads from one of three places:

- the columns that `fields` names;
- the one column that `field` names, whose values map names to values (as an estimator has its `x`);
- if it names neither, every column that no other view names. The type of each value then decides which block
  reads it: `Flags` reads truth values, `Numbers` reads numbers, `Categories` reads text.

A name that is not a string is converted by ``str(name)``. A missing value (an absent name, ``None``, NaN) is
neither learned nor scored.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TypeGuard

import msgspec
import orjson

from streamnb.naive_bayes.features.tokenizer import Text, Tokenizer, check_limits

Counts = dict[str, float]
"""The distinct tokens that one view finds in one message, with their number of occurrences, in order of first
appearance."""


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="words"):
    """Counts every token.

    Parameters
    ----------
    fields : tuple of str
        The text fields to read. They are joined into one text, one line per field.
    prefix : bool
        Whether to read each field as a text of its own and put its name before its tokens: ``subject:free``,
        ``text:free``. The name ends at the first colon, so tokens of two fields are never equal; a field name
        that contains a colon is refused. All limits, and what other readers do with "the text", then apply
        to each field.
    """

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `prefix` is set and a field name contains a colon."""
        _check_prefix(self.fields, self.prefix)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Return the tokens of one text with their counts."""
        return _count(text.tokens)


class WordPairs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pairs"):
    """Counts every two neighbouring tokens, joined by a space, which no token contains.

    `fields` and `prefix` are those of `Words`.
    """

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `prefix` is set and a field name contains a colon."""
        _check_prefix(self.fields, self.prefix)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Return the pairs of neighbouring tokens of one text with their counts."""
        tokens = text.tokens
        return _count([f"{first} {second}" for first, second in pairwise(tokens)])


class CharacterGrams(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="characters"
):
    """Counts runs of `n` characters inside each word, after padding the word with a space at both ends.

    A padded word of at most `n` characters is one feature. Only the first `characters_max` code points of the
    text are read: the end of a long mail adds little evidence to its beginning. `fields` and `prefix` are
    those of `Words`.
    """

    fields: tuple[str, ...] = ("text",)
    n: int = 4
    characters_max: int = 3000  # not a file's to set: the first pages of a mail say enough
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `n` or `characters_max` is below 1, or a prefix contains a colon."""
        _check_prefix(self.fields, self.prefix)
        check_limits(self.n, self.characters_max)

    def read(self, text: Text, tokenizer: Tokenizer) -> Counts:
        """Return the character runs of one text with their counts."""
        tokens = text.tokens
        if len(text.low) > self.characters_max:
            tokens, _ = tokenizer.split(text.low[: self.characters_max])
        counts: Counts = {}
        for token in tokens:
            for gram in _grams(token, self.n):
                counts[gram] = counts.get(gram, 0.0) + 1.0
        return counts


class Ends(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ends"):
    """Counts the first `n` tokens, marked ``h`` (head), and the last `n`, marked ``t`` (tail).

    They hold greetings and signatures. `fields` and `prefix` are those of `Words`.
    """

    fields: tuple[str, ...] = ("text",)
    n: int = 8
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `n` is below 1, or a prefix contains a colon."""
        _check_prefix(self.fields, self.prefix)
        check_limits(self.n)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Return the marked first and last tokens of one text with their counts."""
        tokens = text.tokens
        return _count(["h" + t for t in tokens[: self.n]] + ["t" + t for t in tokens[-self.n :]])


TextReader = Words | WordPairs | CharacterGrams | Ends
TEXT_READERS = TextReader.__args__


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="terms"):
    """Reads a field that already holds term counts: a mapping of term to count, as in river's `BagOfWords`.

    Parameters
    ----------
    field : str
    above : float, optional
        If given, the mapping may hold any finite numbers, and a term counts once if its number is above this
        threshold. ``None`` and NaN are never above it.
    """

    field: str
    above: float | None = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """Reads a field that holds one of several values. The token is the value's JSON, so 1 and "1" differ."""

    field: str


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """Reads a field that holds a real number; ``None`` and NaN are missing."""

    field: str


class _Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings that all block readers share: one field with a mapping, several columns, or neither."""

    field: str = ""
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if both `field` and `fields` are given."""
        if self.field and self.fields:
            raise ValueError("a block reads either `field`, which holds a mapping, or `fields`, not both")


class Categories(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="categories"):
    """Reads named categories: strings, numbers or truth values. 1, "1" and true are different categories."""


class Flags(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="flags"):
    """Reads named truth values."""


class Numbers(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="numbers"):
    """Reads named real numbers; an infinite number is missing."""


Block = Categories | Flags | Numbers
Reader = Words | WordPairs | CharacterGrams | Ends | Terms | Category | Number
AnyReader = Reader | Categories | Flags | Numbers


def reads_text(reader: AnyReader) -> TypeGuard[TextReader]:
    """Return whether a reader counts tokens of text fields."""
    return isinstance(reader, TEXT_READERS)


def fields_of(reader: AnyReader) -> tuple[str, ...]:
    """Return the fields that a reader names; a block that reads every remaining column names none."""
    if isinstance(reader, Categories | Flags | Numbers):
        return reader.fields or ((reader.field,) if reader.field else ())
    return reader.fields if reads_text(reader) else (reader.field,)  # type: ignore[union-attr]


def parts_of(reader: TextReader) -> list[tuple[str, tuple[str, ...]]]:
    """Return the texts that a reader splits into tokens, each as the prefix of its tokens and its fields.

    Examples
    --------
    >>> parts_of(Words(("subject", "text")))
    [('', ('subject', 'text'))]
    >>> parts_of(Words(("subject", "text"), prefix=True))
    [('subject:', ('subject',)), ('text:', ('text',))]
    """
    if reader.prefix:
        return [(f"{field}:", (field,)) for field in reader.fields]
    return [("", reader.fields)]


def token_of(field: str, value: str | float) -> str:
    """Return the token that represents one value of a field: the field's name, ``=`` and the value's JSON.

    Different pairs of field and value have different tokens, because `field_of` finds the separating ``=``
    again: JSON escapes the quotes inside a string, and a number or a truth value contains no ``=``.

    Examples
    --------
    >>> token_of("colour", "red"), token_of("rooms", 3), token_of("sold", True)
    ('colour="red"', 'rooms=3', 'sold=true')
    """
    return f"{field}={orjson.dumps(value).decode()}"


def field_of(token: str) -> str:
    """Return the field of a token that `token_of` made.

    Examples
    --------
    >>> field_of('a="b="c="'), field_of("a=b=1"), field_of('a=""')
    ('a="b', 'a=b', 'a')
    """
    return token[: token.rfind('="', 0, -1) if token.endswith('"') else token.rfind("=")]


def value_of(token: str) -> str | float:
    """Return the value of a token that `token_of` made.

    Examples
    --------
    >>> value_of('colour="red"'), value_of("rooms=3"), value_of("sold=true")
    ('red', 3, True)
    """
    value: str | float = orjson.loads(token[len(field_of(token)) + 1 :])
    return value


def _check_prefix(fields: tuple[str, ...], prefix: bool) -> None:
    for field in fields if prefix else ():
        if ":" in field:
            raise ValueError(f"field {field!r} cannot be a prefix: its name must not contain a colon")


def _count(tokens: list[str]) -> Counts:
    counts: Counts = {}
    for token in tokens:
        counts[token] = counts.get(token, 0.0) + 1.0
    return counts


@lru_cache(maxsize=1 << 16)
def _grams(token: str, n: int) -> tuple[str, ...]:
    padded = f" {token} "
    if len(padded) <= n:
        return (padded,)
    return tuple(padded[i : i + n] for i in range(len(padded) - n + 1))
