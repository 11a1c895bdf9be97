"""The list of mutants, read from the TOML files of this folder and checked against the checkout."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent
CHECKOUT = FOLDER.parents[1]


class NotAMutantError(Exception):
    """An entry of the list has no effect, or names what does not exist."""


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A defect that tests must notice.

    Parameters
    ----------
    name : str
        Unique in the list.
    file : str
        The file that is changed, relative to the checkout.
    old, new : str
        The text that is replaced, which occurs once in the file, and its replacement.
    why : str
        What harm the defect would do.
    tests : list of str
        The ids of pytest of which at least one must fail.
    rebuild : bool
        Whether the file is a part of the compiled module `module`, which is then compiled again.
    module : str
        The dotted name of that module; needed for a ``.pxd`` file, which several modules include.
    """

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: list[str]
    rebuild: bool = False
    module: str = ""

    def applied(self, text: str) -> str:
        """Return the file's text with the defect.

        Raises
        ------
        NotAMutantError
            `old` does not occur exactly once, or is `new`.
        """
        times = text.count(self.old)
        if times != 1 or self.old == self.new:
            raise NotAMutantError(
                f"Mutant {self.name} does not apply: its text occurs {times} times in {self.file}."
            )
        return text.replace(self.old, self.new)


class _Catalogue(msgspec.Struct, forbid_unknown_fields=True):
    mutant: list[Mutant]


def listed(path: Path | None = None) -> list[Mutant]:
    """Return the mutants of one file, or of every file of this folder; those to compile come last.

    Raises
    ------
    NotAMutantError
        Two have the same name, or an entry is incomplete.
    """
    mutants: list[Mutant] = []
    for file in [path] if path else sorted(FOLDER.glob("*.toml")):
        try:
            mutants += msgspec.convert(tomllib.loads(file.read_text()), _Catalogue).mutant
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
            raise NotAMutantError(f"{file.name} is not a list of mutants: {error}.") from error
    names = [mutant.name for mutant in mutants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise NotAMutantError(f"These names of mutants occur twice: {', '.join(sorted(twice))}.")
    return sorted(mutants, key=lambda mutant: mutant.rebuild)


def fault(mutant: Mutant, checkout: Path = CHECKOUT) -> str:
    """Return why a mutant cannot be tried in this checkout; "" if it can."""
    file = checkout / mutant.file
    if not file.is_file():
        return f"{mutant.file} does not exist"
    if mutant.rebuild != (file.suffix in {".pyx", ".pxd"}):
        return "`rebuild` belongs to the files of compiled modules"
    try:
        changed = mutant.applied(file.read_text())
        if not mutant.rebuild:
            ast.parse(changed)
    except (NotAMutantError, SyntaxError) as error:
        return str(error)
    missing = [one for one in mutant.tests if not _is_test(one, checkout)]
    if missing or not mutant.tests:
        return f"these tests do not exist: {missing}"
    return ""


def _is_test(name: str, checkout: Path) -> bool:
    """Return whether an id of pytest, without or with parameters, names a test or a file of tests."""
    file, _, test = name.partition("::")
    if not (checkout / file).is_file():
        return False
    return not test or test.partition("[")[0] in _tests_of(checkout / file)


@cache
def _tests_of(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
