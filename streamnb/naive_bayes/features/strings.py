"""`Strings`: the reader of a text's bytes, as all strings of up to `order` + 1 of them.

A model of the order k predicts a byte from the k bytes before it. All that it has to count are strings: how
often a string of k bytes occurs, and how often each byte follows it, which is how often the string one byte
longer occurs.
"""

from __future__ import annotations

from typing import ClassVar

from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.readers import Drawn, Reader, check_text_fields

ORDER_MAX = 16
BYTES_MAX = 65_536


class Strings(Reader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="strings"):
    """Counts all strings of 0 to `order` + 1 bytes in the first bytes of a text, after `order` spaces.

    ASCII letters are read in lower case. White space stays as it is. The spaces give the first byte of a text
    as many bytes before it as every other byte has.

    Parameters
    ----------
    fields : tuple of str
        The text fields to read. They are joined into one text, one line per field. Give each field a view of
        its own if the first field may fill the window.
    order : int
        How many bytes before a byte predict it, from 1 to 16.
    bytes : int
        How many bytes of the text in UTF-8 are read, from 1 to 65,536. Reading and learning take time in
        proportion to `bytes` times `order` + 1.

    Notes
    -----
    A string is a feature under the name that it has in Latin-1, where each character is one byte. The longest
    strings come first. A string never occurs more often than one without its first or last byte, and where
    both occur equally often the longer one is the older feature. So eviction, which begins with the rarest
    and, among equals, with the oldest, never takes a string and leaves a longer one that contains it.

    Examples
    --------
    >>> from streamnb.naive_bayes.features.tokenizer import Tokenizer
    >>> Strings(order=1).features(Message({"text": ["Ab"]}, 0, Tokenizer()))
    {' a': 1.0, 'ab': 1.0, ' ': 1.0, 'a': 1.0, 'b': 1.0, '': 3.0}
    """

    reads: ClassVar[str] = "text"

    fields: tuple[str, ...] = ("text",)
    order: int = 5
    bytes: int = 500  # the first lines of a mail say most

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if `fields` is no tuple of names, or a limit is out of its bounds."""
        check_text_fields(self.fields)
        check_fields(self)
        for name, value, most in (("order", self.order, ORDER_MAX), ("bytes", self.bytes, BYTES_MAX)):
            if not 1 <= value <= most:
                raise ValueError(f"`{name}` must be from 1 to {most}, not {value}")

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The text fields."""
        return self.fields

    def features(self, message: Message) -> dict[str, float]:
        """Return the strings of the text with their counts, the longest first; nothing for an empty text."""
        read = message.text(self.fields).original.encode()[: self.bytes].lower().decode("latin-1")
        if not read:
            return {}
        text = " " * self.order + read
        counts: dict[str, float] = {}
        for size in range(self.order + 1, 0, -1):
            for start in range(len(text) - size + 1):
                string = text[start : start + size]
                counts[string] = counts.get(string, 0.0) + 1.0
        counts[""] = float(len(text))
        return counts

    def written(self, drawn: Drawn) -> dict[str, object]:
        """Return the drawn text, which is one feature, in the first field."""
        return {self.fields[0]: "".join(shown(text) for text, _ in drawn)}


def shown(string: str) -> str:
    """Return a string as people read it: its bytes as UTF-8, with a mark for those that are part of none."""
    return string if string.isascii() else string.encode("latin-1").decode(errors="replace")
