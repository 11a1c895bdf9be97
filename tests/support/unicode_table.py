"""Compare streamnb's Unicode table with unicodedata2, or write it: ``python -m tests.support.unicode_table``.

unicodedata2 has the database of one Unicode version, for any Python. It has no case mappings. Python has
them, and Unicode never changes those of a code point that is assigned. For a code point that is newer than
Python's database, the lower case is found by name: CAPITAL becomes SMALL.

Without ``--write`` the command prints the code points that the installed unicodedata2 assigns and that have
another kind or lower case in streamnb. For another version of Unicode, install it into a folder:
``pip install --target FOLDER unicodedata2==15.1.0``, and put the folder first in ``PYTHONPATH``.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from streamnb.naive_bayes.features import unicode_table
from streamnb.naive_bayes.features.alphabet import (
    CJK,
    JOINER,
    MARK,
    OTHER,
    REGION,
    SPACE,
    TONE,
    WORD,
    kind,
    lower,
)

CODE_POINTS = range(sys.maxunicode + 1)

_MODULE = '''"""The Unicode table: facts about code points that do not depend on the version of Python.

``python -m tests.support.unicode_table --write`` wrote it. All numbers are hexadecimal; a range includes
both ends.
"""

VERSION = "{version}"
"""The version of Unicode."""

ALPHANUMERIC = """
{alphanumeric}
"""
"""What `str.isalnum` accepts: letters, and code points with a numeric value."""

MARKS = """
{marks}
"""
"""Combining marks: the general categories Mn, Mc and Me."""

SPACES = """
{spaces}
"""
"""What `str.isspace` accepts."""

LOWER = """
{lower}
"""
"""Lower cases: ``41-5a>61`` gives U+0061 to U+0041, U+0062 to U+0042, and so on. With ``/2`` only every
second code point of the range has one: ``100-12e/2>101`` gives U+0101 to U+0100, and U+0103 to U+0102. The
lower case ``69+307`` has two code points."""
'''
_GROUPS = {CJK: WORD, JOINER: OTHER, REGION: OTHER, TONE: OTHER}
_OWN_RULES = {0x5F: OTHER, 0x200C: OTHER}  # "_" belongs to words, the zero width non-joiner to marks


def is_assigned(database: ModuleType, code_point: int) -> bool:
    """Return whether the database's version of Unicode assigns a code point."""
    return bool(database.category(chr(code_point)) != "Cn")


def group_of(database: ModuleType, code_point: int) -> str:
    """Return the group of a code point by the properties that define `str.isalnum` and `str.isspace`.

    The groups are the kinds `WORD`, `MARK`, `SPACE` and `OTHER` of the alphabet.
    """
    character = chr(code_point)
    category = database.category(character)
    if category.startswith("L") or database.numeric(character, None) is not None:
        return WORD
    if category == "Zs" or database.bidirectional(character) in {"WS", "B", "S"}:
        return SPACE
    return MARK if category.startswith("M") else OTHER


def lower_of(database: ModuleType, code_point: int) -> str:
    """Return the lower case of one code point."""
    character = chr(code_point)
    if not is_assigned(database, code_point):
        return character
    if is_assigned(unicodedata, code_point):
        return character.lower()
    if database.category(character) != "Lu":
        return character
    return str(database.lookup(database.name(character).replace("CAPITAL", "SMALL")))


def differences(database: ModuleType) -> list[int]:
    """Return the code points that the database assigns and that have another group or lower case here."""
    return [
        code_point
        for code_point in CODE_POINTS
        if is_assigned(database, code_point)
        and (
            _our_group(code_point) != group_of(database, code_point)
            or lower(chr(code_point)) != lower_of(database, code_point)
        )
    ]


def _our_group(code_point: int) -> str:
    ours = kind(code_point)
    return _OWN_RULES.get(code_point, _GROUPS.get(ours, ours))


def module(database: ModuleType) -> str:
    """Return the source of the table."""
    groups: dict[str, list[int]] = {WORD: [], MARK: [], SPACE: [], OTHER: []}
    for code_point in CODE_POINTS:
        groups[group_of(database, code_point)].append(code_point)
    return _MODULE.format(
        version=database.unidata_version,
        alphanumeric=_filled(spans(groups[WORD])),
        marks=_filled(spans(groups[MARK])),
        spaces=_filled(spans(groups[SPACE])),
        lower=_filled(_mappings(database)),
    )


def _filled(parts: Iterable[str]) -> str:
    return textwrap.fill(" ".join(parts), 110, break_on_hyphens=False)


def spans(code_points: Iterable[int]) -> list[str]:
    """Return the ranges of code points as text, such as ``41-5a``."""
    runs: list[list[int]] = []
    for code_point in code_points:
        if runs and runs[-1][1] == code_point - 1:
            runs[-1][1] = code_point
        else:
            runs.append([code_point, code_point])
    return [_span(first, last) for first, last in runs]


def _span(first: int, last: int) -> str:
    return f"{first:x}" if first == last else f"{first:x}-{last:x}"


def _mappings(database: ModuleType) -> list[str]:
    """Return the lower cases as text, such as ``41-5a>61``."""
    runs: list[
        tuple[int, int, int, str]
    ] = []  # first, last, step (0 if there is one), lower case of the first
    for code_point in CODE_POINTS:
        low = lower_of(database, code_point)
        if low == chr(code_point):
            continue
        if runs and len(low) == len(runs[-1][3]) == 1:
            first, last, step, first_low = runs[-1]
            gap = code_point - last
            same_distance = ord(low) - code_point == ord(first_low) - first
            if same_distance and gap <= 2 and step in {0, gap}:
                runs[-1] = (first, code_point, gap, first_low)
                continue
        runs.append((code_point, code_point, 0, low))
    return [
        f"{_span(first, last)}{'/2' if step == 2 else ''}>{'+'.join(f'{ord(one):x}' for one in low)}"
        for first, last, step, low in runs
    ]


def main() -> None:
    """Write the table, or compare it."""
    import unicodedata2

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="write the table from the installed unicodedata2"
    )
    if parser.parse_args().write:
        Path(unicode_table.__file__).write_text(module(unicodedata2), encoding="utf-8")
        return
    found = differences(unicodedata2)
    version = unicodedata2.unidata_version
    print(
        f"Unicode {version} against {unicode_table.VERSION}: {len(found)} code points differ", *spans(found)
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
