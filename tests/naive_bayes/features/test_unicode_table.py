"""The Unicode table: it is that of unicodedata2 for every code point, and what Python says of older ones."""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from pathlib import Path

import unicodedata2

from streamnb import naive_bayes
from streamnb.naive_bayes.features import unicode_table
from streamnb.naive_bayes.features.alphabet import UNICODE, kind, kind_page, lower
from tests.support.unicode_table import CODE_POINTS, differences, is_assigned, module, spans

# The cased letters of Unicode 16 that Unicode 15.1, and Python up to 3.13, do not know.
CASED_IN_16 = "1c89 a7cb-a7cc a7da a7dc 10d50-10d65"

SOURCES = {".py", ".pyx", ".pxd"}


def test_the_table_is_that_of_unicodedata2() -> None:
    """Written again from the same version of Unicode, it is the same file."""
    assert unicodedata2.unidata_version == unicode_table.VERSION
    assert Path(unicode_table.__file__).read_text(encoding="utf-8") == module(unicodedata2)


def test_every_code_point_is_that_of_unicodedata2() -> None:
    """Kinds and lower cases agree for all code points that are assigned; the others stay as they are."""
    assert differences(unicodedata2) == []
    spare = [point for point in CODE_POINTS if not is_assigned(unicodedata2, point)]
    assert {kind(point) for point in spare} == {"p"}
    assert lower("".join(map(chr, spare))) == "".join(map(chr, spare))


def test_every_code_point_that_python_knows_is_that_of_python() -> None:
    """Its own methods agree on each code point that both versions of Unicode assign."""
    for point in CODE_POINTS:
        if is_assigned(unicodedata, point) and is_assigned(unicodedata2, point):
            character, is_word = chr(point), kind(point) in "wc"
            assert is_word == (character.isalnum() or character == "_"), hex(point)
            assert (kind(point) == "s") == character.isspace(), hex(point)
            assert lower(character) == character.lower(), hex(point)


def test_the_letters_that_python_may_not_know_have_the_lower_case_of_their_name() -> None:
    """The list is complete for Python from 3.11 to 3.13, and part of Python's own mappings later."""
    cased = {point for point in CODE_POINTS if lower(chr(point)) != chr(point)}
    unknown = sorted(point for point in cased if not is_assigned(unicodedata, point))
    assert set(spans(unknown)) <= set(CASED_IN_16.split())
    for point in unknown:
        assert unicodedata2.name(lower(chr(point))) == unicodedata2.name(chr(point)).replace(
            "CAPITAL", "SMALL"
        )
    assert unknown or unicodedata.unidata_version >= unicode_table.VERSION


def test_the_hash_covers_every_code_point() -> None:
    """A snapshot holds it. If it changes, tokens change, and older snapshots need a migration."""
    kinds = "".join(kind_page(page) for page in range(len(CODE_POINTS) >> 8))
    lowers = lower("".join(map(chr, CODE_POINTS)))
    assert len(kinds) == sys.maxunicode + 1
    found = hashlib.blake2b((kinds + lowers).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    assert {"version": unicode_table.VERSION, "hash": found} == UNICODE


def test_no_module_of_the_model_asks_python_what_a_letter_is() -> None:
    """Its database differs from version to version; `str.lower` is used on ASCII only."""
    asks = re.compile(
        r"import unicodedata|\.is(alnum|alpha|decimal|numeric|space)\(|\.casefold\(|compile\(.*\\[wWsSdDbB]"
    )
    sources = [path for path in Path(naive_bayes.__file__).parent.rglob("*.p*") if path.suffix in SOURCES]
    assert [path.name for path in sources if asks.search(path.read_text(encoding="utf-8"))] == []
    assert len(sources) > 100
