"""A snapshot: state and offsets in one value, back from its file as they were."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot, differences, fingerprint
from streamnb.errors import SnapshotError
from streamnb.storage import container, snapshot_file
from streamnb.storage.snapshot_file import FORMAT


def example(**parts: Any) -> Snapshot:  # noqa: ANN401 - the parts of a snapshot, by name
    """A snapshot with something in every part."""
    whole: dict[str, Any] = {
        "values": {"classes": ["ham"], "learned": 3},
        "sections": {"counts": np.array([[1.0, 2.0]])},
        "digest": {"order_free": "0", "all": "1"},
        "statistics": {"model": {"head": "product"}},
        "reading": {"prior": {"kind": "learned"}},
        "settings": {"model": {"name": "test"}},
        "source": {"cluster": "c"},
        "accounts": {Partition("mail", 1): Account(2, 9, scored=7), Partition("mail", 0): Account(0, 0)},
        "lineage": [{"event": "reading changed"}],
        "written_ms": 5,
        "streamnb": "0.1.0",
        "sequence": 4,
    }
    return Snapshot(**whole | parts)


def data_of(snapshot: Snapshot) -> bytes:
    """Its file."""
    return b"".join(snapshot_file.encode(snapshot))


def test_every_part_comes_back() -> None:
    """Equal, and the arrays to the bit."""
    before = example()
    after = snapshot_file.decode(data_of(before))
    for field in dataclasses.fields(Snapshot):
        if field.name != "sections":
            assert getattr(after, field.name) == getattr(before, field.name), field.name
    assert after.sections["counts"].tobytes() == before.sections["counts"].tobytes()


def test_a_number_is_given_without_touching_the_rest() -> None:
    """A copy: the value itself stays as it was."""
    before = example()
    after = before.numbered(9)
    assert (before.sequence, after.sequence) == (4, 9)
    assert dataclasses.replace(after, sequence=4) == before


@pytest.mark.parametrize(
    "account",
    [Account(0, 9, scored=8), Account(0, 9, scored=10), Account(5, 4)],
    ids=["lost", "twice", "back"],
)
def test_accounts_that_do_not_balance_are_refused(account: Account) -> None:
    """Something was lost or counted twice, and nobody can tell what."""
    with pytest.raises(SnapshotError, match="do not balance"):
        snapshot_file.decode(data_of(example(accounts={Partition("mail", 0): account})))


def header() -> dict[str, Any]:
    """The header of the example."""
    return container.decode(data_of(example())).header


@pytest.mark.parametrize("name", sorted(header()))
@pytest.mark.parametrize("change", ["absent", "null", "of another type"])
def test_a_header_that_lacks_a_part_is_refused(name: str, change: str) -> None:
    """Missing, null, or a list of a list."""
    broken = header()
    if change == "absent":
        del broken[name]
    else:
        broken[name] = None if change == "null" else [[1]]
    with pytest.raises(SnapshotError, match="header is not a snapshot's"):
        snapshot_file.decode(b"".join(container.encode(broken, {})))


def test_a_part_from_the_future_is_refused() -> None:
    """A minor version adds sections, not parts of the header: what it meant could not be kept."""
    with pytest.raises(SnapshotError, match="telepathy"):
        snapshot_file.decode(b"".join(container.encode({**header(), "telepathy": 1}, {})))


def test_a_container_of_something_else_is_refused() -> None:
    """By its format's name."""
    with pytest.raises(SnapshotError, match="header is not a snapshot's"):
        snapshot_file.decode(b"".join(container.encode({**header(), "format": FORMAT + "s"}, {})))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def without_nulls(value: object) -> object:
    """A setting that is null is the same as one that is absent."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


@given(then=JSON, now=JSON)
def test_settings_differ_where_they_differ(then: object, now: object) -> None:
    """No line for what is equal, at least one for what is not, in both directions."""
    assert differences(then, then) == []
    lines = differences(then, now)
    equal = fingerprint({"x": without_nulls(then)}) == fingerprint({"x": without_nulls(now)})
    assert (lines == []) == equal
    assert len(differences(now, then)) == len(lines)


def test_a_difference_names_its_path() -> None:
    """What it was, what it is now; a key that only one has stands against null."""
    then = {"model": {"views": [{"name": "a"}], "head": "product", "old": 1}}
    now = {"model": {"views": [{"name": "b"}], "head": "product", "new": {"x": True}}}
    assert differences(then, now) == [
        'model.new: null -> {"x":true}',
        "model.old: 1 -> null",
        'model.views: [{"name":"a"}] -> [{"name":"b"}]',
    ]
