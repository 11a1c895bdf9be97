"""Readers: how the fields of a message become features.

Text readers (`Words`, `WordPairs`, `CharacterGrams`, `Edges`) count what the tokenizer makes of text fields.
`Terms`, `Category` and `Number` read one field that holds term counts, a category or a number.

Block readers (`Categories`, `Flags`, `Numbers`) read named values whose names need not be known before. Each
reads one of three things: the columns it names (`fields`), one column that holds a mapping of names to values
(`field`, as an estimator has its `x`), or, if it names neither, every column that no other view names; the
type of each value then says which block reads it: a truth value is a flag, a number a number, a text a
category. A name that is no string is known by ``str(name)``. A value that is missing (an absent name,
``None``, NaN) is neither learned nor scored.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TypeGuard

import msgspec
import orjson

from streamnb.naive_bayes.features.tokenizer import Text, Tokenizer, check_limits

Counts = dict[str, float]
"""Distinct tokens of one view of one message, in order of first appearance, with how often each occurs."""


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="words"):
    """Every token.

    Parameters
    ----------
    fields : tuple of str
        Read as one text, a line each.
    prefix : bool
        Read each field for itself, and count its tokens apart: ``subject:free``, ``text:free``. What stands
        before the first colon is the field, so no two are one; a name with a colon is refused. The limits,
        and what other readers say of a text, then hold for each field.
    """

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Token counts of one text."""
        return _count(text.tokens)


class WordPairs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pairs"):
    """Every two neighbouring tokens, joined by a space (which no token holds)."""

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Pair counts of one text."""
        tokens = text.tokens
        return _count([f"{first} {second}" for first, second in pairwise(tokens)])


class CharacterGrams(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="characters"
):
    """Runs of `n` characters inside each word, the word padded by a space at both ends.

    A padded word of at most `n` characters is one feature. Only the first `characters_max` code points of
    the text are read: the end of a long mail says little that its beginning does not.
    """

    fields: tuple[str, ...] = ("text",)
    n: int = 4
    characters_max: int = 3000
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a run or a text shorter than 1, or a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)
        check_limits(self.n, self.characters_max)

    def read(self, text: Text, tokenizer: Tokenizer) -> Counts:
        """Counts of the runs of one text."""
        tokens = text.tokens
        if len(text.low) > self.characters_max:
            tokens, _ = tokenizer.split(text.low[: self.characters_max])
        counts: Counts = {}
        for token in tokens:
            for gram in _grams(token, self.n):
                counts[gram] = counts.get(gram, 0.0) + 1.0
        return counts


class Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="edges"):
    """The first and the last `n` tokens, marked ``h`` (head) and ``t`` (tail): greetings and signatures."""

    fields: tuple[str, ...] = ("text",)
    n: int = 8
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for an edge of less than one token, or a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)
        check_limits(self.n)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Counts of the marked tokens of one text."""
        tokens = text.tokens
        return _count(["h" + t for t in tokens[: self.n]] + ["t" + t for t in tokens[-self.n :]])


TextReader = Words | WordPairs | CharacterGrams | Edges
TEXT_READERS = TextReader.__args__


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="terms"):
    """A field that holds term counts already: a mapping of name to count, as river's `BagOfWords` gives.

    Parameters
    ----------
    field : str
    above : float, optional
        Then any finite number may stand for a term, and a term is there, once, if its number is above this
        one; ``None`` and NaN are not above it.
    """

    field: str
    above: float | None = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """A field with one of several values; the token is the value's JSON, so that 1 and "1" differ."""

    field: str


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """A field with a real value; ``None`` and NaN are missing."""

    field: str


class _Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the block readers have in common."""

    field: str = ""
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ``ValueError`` if a block reads a mapping and columns at once."""
        if self.field and self.fields:
            raise ValueError("a block reads either `field`, which holds a mapping, or `fields`, not both")


class Categories(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="categories"):
    """Names to one of several values each: strings, numbers or truth values; 1, "1" and true differ."""


class Flags(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="flags"):
    """Names to truth values."""


class Numbers(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="numbers"):
    """Names to real numbers; an infinity is missing."""


Block = Categories | Flags | Numbers
Reader = Words | WordPairs | CharacterGrams | Edges | Terms | Category | Number
AnyReader = Reader | Categories | Flags | Numbers


def reads_text(reader: AnyReader) -> TypeGuard[TextReader]:
    """Whether a reader wants tokens."""
    return isinstance(reader, TEXT_READERS)


def fields_of(reader: AnyReader) -> tuple[str, ...]:
    """The fields a reader names."""
    if isinstance(reader, Categories | Flags | Numbers):
        return reader.fields or ((reader.field,) if reader.field else ())
    return reader.fields if reads_text(reader) else (reader.field,)  # type: ignore[union-attr]


def parts_of(reader: TextReader) -> list[tuple[str, tuple[str, ...]]]:
    """The texts that a reader looks at: what each one's tokens begin with, and its fields.

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
    """The token that stands for a value of a field.

    No two pairs share one: the JSON of a value holds no ``="`` but at its beginning.

    Examples
    --------
    >>> token_of("colour", "red"), token_of("rooms", 3), token_of("sold", True)
    ('colour="red"', 'rooms=3', 'sold=true')
    """
    return f"{field}={orjson.dumps(value).decode()}"


def field_of(token: str) -> str:
    """The field of a token that `token_of` made.

    Examples
    --------
    >>> field_of('a="b="c="'), field_of("a=b=1"), field_of('a=""')
    ('a="b', 'a=b', 'a')
    """
    return token[: token.rfind('="', 0, -1) if token.endswith('"') else token.rfind("=")]


def value_of(token: str) -> str | float:
    """The value of a token that `token_of` made.

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
            raise ValueError(f"a field whose name has a colon, as {field!r}, cannot be a prefix")


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
