"""Readers: the settings that say which fields of a message a view reads, and which features it makes of them.

Text readers (`Words`, `WordPairs`, `CharacterGrams`, `Ends`) count the tokens of text fields, or features
made of the tokens. `Terms` reads one field that holds term counts.

Block readers (`Categories`, `Flags`, `Numbers`) read named values; the names need not be known in advance.
Each block reads from one of three places:

- the fields that `fields` names;
- the one field that `field` names, whose values map names to values (as an estimator has its `x`);
- if it names neither, every field that no other view names. The type of each value then decides which block
  reads it: `Flags` reads truth values, `Numbers` reads numbers, `Categories` reads text.

`Category` and `Number` are shorthand for a block of one named field.

The file is long because all readers of a settings file are in it, with their documentation.

A name that is not a string is converted by ``str(name)``. A missing value (an absent name, ``None``, NaN) is
neither learned nor scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Protocol

import msgspec

from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.field_tokens import field_of, token_of, value_of
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.tokenizer import Text, Tokenizer, check_limits
from streamnb.naive_bayes.features.values import category, numbers, term_counts, truth

Counts = dict[str, float]
"""The distinct tokens that one view finds in one message, with their number of occurrences, in order of first
appearance."""

Drawn = Iterable[tuple[str, float]]
"""Features that an event model has drawn, in order; a token may occur more than once."""


class OwnReader(Protocol):
    """A user's own reader: a frozen value that holds only settings.

    Use a dataclass or a msgspec struct: a snapshot records the settings by name.
    """

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The fields that it reads. Readers of all remaining fields leave them out."""

    def features(self, message: Message) -> Mapping[str, float]:
        """Return the features of a message: tokens with their counts, or named finite numbers.

        It must depend only on the message and the reader's settings.

        Raises
        ------
        ValueError
            The message cannot be read; nothing of its batch is learned.
        """


class Reader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every built-in reader offers."""

    reads: ClassVar[str] = ""
    """What its fields hold: "text", "terms", "category", "flag" or "number"."""

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the reader."""
        return True

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The fields that it names; a block that reads every remaining field names none."""
        raise NotImplementedError

    def features(self, message: Message) -> dict[str, float]:
        """Return the features of a message: tokens with their counts, or named numbers.

        Raises
        ------
        ValueError
            A field holds a value that it cannot read.
        """
        raise NotImplementedError

    def written(self, drawn: Drawn) -> dict[str, object]:  # noqa: ARG002 - for those that can
        """Return the fields of a message that has these features: the inverse of `features`.

        Raises
        ------
        ValueError
            The features do not determine the fields.
        """
        raise ValueError("text cannot be rebuilt from pairs, character grams or ends")


class TextReader(Reader, frozen=True, forbid_unknown_fields=True):
    """The settings that all readers of text share.

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

    reads: ClassVar[str] = "text"

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `fields` is no tuple of names, or `prefix` is set and one has a colon."""
        check_text_fields(self.fields)
        for field in self.fields if self.prefix else ():
            if ":" in field:
                raise ValueError(f"field {field!r} cannot be a prefix: its name must not contain a colon")

    def read(self, text: Text, tokenizer: Tokenizer) -> Counts:
        """Return the features of one text with their counts."""
        raise NotImplementedError

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The text fields."""
        return self.fields

    def features(self, message: Message) -> dict[str, float]:
        """Return the features of all texts that the reader reads, with their counts."""
        counts: Counts = {}
        for prefix, fields in self.texts():
            for token, n in self.read(message.text(fields), message.tokenizer).items():
                counts[prefix + token] = counts.get(prefix + token, 0.0) + n
        return counts

    def texts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the texts that are split into tokens, each as the prefix of its tokens and its fields.

        Examples
        --------
        >>> Words(("subject", "text")).texts()
        [('', ('subject', 'text'))]
        >>> Words(("subject", "text"), prefix=True).texts()
        [('subject:', ('subject',)), ('text:', ('text',))]
        """
        if self.prefix:
            return [(f"{field}:", (field,)) for field in self.fields]
        return [("", self.fields)]


class Words(TextReader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="words"):
    """Counts every token; `TextReader` describes `fields` and `prefix`.

    Parameters
    ----------
    vocabulary : collection of str, optional
        The only tokens that are counted, as they are counted: in lower case, with the prefix. All others are
        left out of the message. A model with it runs on the plain driver.
    """

    vocabulary: frozenset[str] = frozenset()

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the reader: not with `vocabulary`."""
        return not self.vocabulary

    def features(self, message: Message) -> dict[str, float]:
        """Return the tokens with their counts."""
        return _only(super().features(message), self.vocabulary)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Return the tokens of one text with their counts."""
        return counted(text.tokens)

    def written(self, drawn: Drawn) -> dict[str, object]:
        """Return a text of the drawn tokens, in the first field."""
        return {self.fields[0]: " ".join(token for token, _ in drawn)}


class WordPairs(TextReader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pairs"):
    """Counts every two neighbouring tokens, joined by a space, which no token contains.

    `TextReader` describes `fields` and `prefix`.
    """

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Return the pairs of neighbouring tokens of one text with their counts."""
        return counted([f"{first} {second}" for first, second in pairwise(text.tokens)])


class CharacterGrams(TextReader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="characters"):
    """Counts runs of `n` characters inside each word, after padding the word with a space at both ends.

    A padded word of at most `n` characters is one feature. Only the first `characters_max` code points of the
    text are read: the end of a long mail adds little evidence to its beginning. `TextReader` describes
    `fields` and `prefix`.
    """

    n: int = 4
    characters_max: int = 3000  # not a file's to set: the first pages of a mail say enough

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `n` or `characters_max` is below 1, or a prefix contains a colon."""
        super().__post_init__()
        check_fields(self)
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


class Ends(TextReader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ends"):
    """Counts the first `n` tokens, marked ``h`` (head), and the last `n`, marked ``t`` (tail).

    They hold greetings and signatures. `TextReader` describes `fields` and `prefix`.
    """

    n: int = 8

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `n` is below 1, or a prefix contains a colon."""
        super().__post_init__()
        check_fields(self)
        check_limits(self.n)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Return the marked first and last tokens of one text with their counts."""
        tokens = text.tokens
        return counted(["h" + t for t in tokens[: self.n]] + ["t" + t for t in tokens[-self.n :]])


class Terms(Reader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="terms"):
    """Reads a field that already holds term counts: a mapping of term to count, as in river's `BagOfWords`.

    Parameters
    ----------
    field : str
    above : float, optional
        If given, the mapping may hold any finite numbers, and a term counts once if its number is above this
        threshold. ``None`` and NaN are never above it.
    vocabulary : collection of str, optional
        The only terms that are counted; all others are left out of the message. A model with it runs on the
        plain driver.
    """

    reads: ClassVar[str] = "terms"

    field: str
    above: float | None = None
    vocabulary: frozenset[str] = frozenset()

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the reader: not with `vocabulary`."""
        return not self.vocabulary

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The one field."""
        return (self.field,)

    def features(self, message: Message) -> dict[str, float]:
        """Return the terms with their counts, without those whose count is 0."""
        counts = term_counts(message.value(self.field), self.field, self.above)
        return _only(counts, self.vocabulary)

    def written(self, drawn: Drawn) -> dict[str, object]:
        """Return the drawn terms with their counts, in the field."""
        counts: dict[str, int] = {}
        for term, _ in drawn:
            counts[term] = counts.get(term, 0) + 1
        return {self.field: counts}


class Block(Reader, frozen=True, forbid_unknown_fields=True):
    """The settings that all block readers share: one field with a mapping, several fields, or neither.

    Raises
    ------
    ValueError
        Both `field` and `fields` are given.
    """

    field: str = ""
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that `field` is one name, `fields` are several, and not both are given."""
        if not isinstance(self.field, str):
            raise ValueError(f"`field` must be one name; for several write fields={self.field!r}")
        check_names(self.fields)
        if self.field and self.fields:
            raise ValueError(
                "give a reader either `field` (one field that holds a mapping) or `fields`, not both"
            )

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The fields that it names, which may be none."""
        return self.fields or ((self.field,) if self.field else ())

    def values(self, message: Message) -> Iterable[tuple[str, object]]:
        """Return the names and values that it reads, without the missing values."""
        return message.values(self.field, self.fields, self.reads)

    def placed(self, values: dict[str, object]) -> dict[str, object]:
        """Return drawn values as the fields that the reader would read them from."""
        return {self.field: values} if self.field else values


class Categories(Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="categories"):
    """Reads named categories: strings, numbers or truth values. 1, "1" and true are different categories."""

    reads: ClassVar[str] = "category"

    def features(self, message: Message) -> dict[str, float]:
        """Return a token with the count 1 for each name and value."""
        return {f"{name}={category(value, name)}": 1.0 for name, value in self.values(message)}

    def written(self, drawn: Drawn) -> dict[str, object]:
        """Return the drawn values by name."""
        return self.placed({field_of(token): value_of(token) for token, _ in drawn})


class Flags(Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="flags"):
    """Reads named truth values."""

    reads: ClassVar[str] = "flag"

    def features(self, message: Message) -> dict[str, float]:
        """Return a token with the count 1 for each name and truth value."""
        return {token_of(name, truth(value, name)): 1.0 for name, value in self.values(message)}

    def written(self, drawn: Drawn) -> dict[str, object]:
        """Return the drawn truth values by name."""
        return self.placed({field_of(token): value_of(token) for token, _ in drawn})


class Numbers(Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="numbers"):
    """Reads named real numbers; an infinite number is missing."""

    reads: ClassVar[str] = "number"

    def features(self, message: Message) -> dict[str, float]:
        """Return the numbers by name."""
        return numbers(self.values(message))

    def written(self, drawn: Drawn) -> dict[str, object]:
        """Return the drawn numbers by name."""
        return self.placed(dict(drawn))


class Shorthand(Reader, frozen=True, forbid_unknown_fields=True):
    """A reader that a view replaces by the block reader that it is shorthand for."""

    field: str

    @property
    def block(self) -> Block:
        """The block reader in its place."""
        raise NotImplementedError

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The one field."""
        return (self.field,)

    def features(self, message: Message) -> dict[str, float]:
        """Return the features that the block reader finds."""
        return self.block.features(message)


class Category(Shorthand, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """Shorthand for `Categories` of one field."""

    @property
    def block(self) -> Categories:
        """The reader that a view uses in its place."""
        return Categories(fields=(self.field,))


class Number(Shorthand, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """Shorthand for `Numbers` of one field."""

    @property
    def block(self) -> Numbers:
        """The reader that a view uses in its place."""
        return Numbers(fields=(self.field,))


AnyReader = (
    Words | WordPairs | CharacterGrams | Ends | Terms | Categories | Flags | Numbers | Category | Number
)
"""The readers that a settings file can name, by their `kind`."""


def check_names(fields: object) -> None:
    """Raise ``ValueError`` if fields are not a sequence of names."""
    if not isinstance(fields, list | tuple) or not all(isinstance(field, str) for field in fields):
        raise ValueError(f"`fields` must be a tuple of names, such as ('subject', 'body'), not {fields!r}")


def check_text_fields(fields: object) -> None:
    """Raise ``ValueError`` if fields are not a sequence of at least one name."""
    check_names(fields)
    if not fields:
        raise ValueError("`fields` must name at least one text field")


def _only(counts: Counts, vocabulary: frozenset[str]) -> Counts:
    """Return the counts of the tokens of a vocabulary; all if it is empty."""
    return {token: n for token, n in counts.items() if token in vocabulary} if vocabulary else counts


def counted(tokens: list[str]) -> Counts:
    """Return tokens with their numbers of occurrences, in order of first appearance."""
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
