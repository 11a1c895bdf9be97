"""What the kernel uses of a model, and the constants it has in common with the plain modules."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes._kernel.driven import DrivenModel, DrivenView
from streamnb.naive_bayes.event_models import Gaussian, Multinomial
from streamnb.naive_bayes.event_models.multinomial import log_weight
from streamnb.naive_bayes.features import alphabet
from streamnb.naive_bayes.features.entities import Whole
from streamnb.naive_bayes.features.readers import Block
from streamnb.naive_bayes.posterior.against_rest import VIEW_FEATURES

KERNEL = Path(_kernel.__file__).parent
SOURCES = {path.name: path.read_text() for path in KERNEL.glob("*.p[xy][dx]")}

compiled = pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)


def _members(protocol: type) -> set[str]:
    names = {*vars(protocol), *protocol.__annotations__}
    return {name for name in names if not name.startswith("_")}


def _used(name: str, sources: list[str]) -> set[str]:
    """The attributes of a variable that Cython sources use."""
    return {each for source in sources for each in re.findall(rf"(?<![.\w]){name}\.(\w+)", source)}


def _constant(file: str, name: str) -> int:
    """The value that a ``cdef enum`` gives a name."""
    match = re.search(rf"^    {name} = (\d+)\b", SOURCES[file], re.MULTILINE)
    assert match is not None
    return int(match[1])


def test_the_driver_uses_of_a_model_what_its_protocol_lists() -> None:
    """All of it and nothing else: mypy holds a model to the Protocol, but does not read Cython."""
    assert _used("model", list(SOURCES.values())) == _members(DrivenModel)


def test_the_driver_uses_of_a_view_what_its_protocol_lists() -> None:
    """Where views are described; after that, `view` is a struct."""
    described = SOURCES["step.pyx"].split("def __dealloc__")[0]

    assert _used("view", [described, SOURCES["values.pyx"]]) == _members(DrivenView)


def test_constants_of_the_compiler_are_the_plain_ones() -> None:
    """The import of the driver compares them too, with the code that was compiled."""
    assert _constant("against_rest.pxd", "VIEW_FEATURES") == VIEW_FEATURES
    assert _constant("readers.pxd", "LOG_WEIGHT_OF_ONE") == 256 * log_weight(1.0)


@pytest.mark.parametrize("number", ["9007199254740992", "2.0**53", "2**53", "1e100", "2.0**-32", "EMPTY = 1"])
def test_no_number_of_a_plain_module_is_written_again(number: str) -> None:
    """The kernel imports it instead."""
    assert [name for name, text in SOURCES.items() if number in text] == []


def _settings(module: str) -> dict[str, dict[object, int]]:
    """The tables of a compiled module, by name: a setting of the plain modules to its number in C."""
    return vars(import_module(f"streamnb.naive_bayes._kernel.{module}"))


@compiled
def test_every_setting_has_a_number_in_c() -> None:
    """The weights of tokens, the entities that are one token, the variances, and the blocks."""
    step = _settings("step")
    variances = {
        value for choice in get_args(get_type_hints(Gaussian)["variance"]) for value in get_args(choice)
    }

    assert set(step["_WEIGHTS"]) == set(get_args(get_type_hints(Multinomial)["weight"]))
    assert set(step["_WHOLE"]) == set(get_args(Whole))
    assert set(step["_VARIANCES"]) == variances
    assert set(step["_BLOCKS"]) == set(Block.__subclasses__())
    assert step["_BLOCKS"] == _settings("values")["_KINDS"]


@compiled
def test_every_kind_of_code_point_has_a_number_in_c() -> None:
    """One of its own."""
    kinds = {str(value) for name, value in vars(alphabet).items() if name.isupper() and len(str(value)) == 1}
    numbers = _settings("tokenizer")["_KINDS"]

    assert set(numbers) == kinds
    assert sorted(numbers.values()) == list(range(len(kinds)))
