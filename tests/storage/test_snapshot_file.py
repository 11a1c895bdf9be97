"""A snapshot comes back from its file unchanged, and a file with a wrong header is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
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
    """Return a snapshot with a value in every field."""
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
    """Return the bytes of a snapshot's file."""
    return b"".join(snapshot_file.encode(snapshot))


def test_every_part_comes_back() -> None:
    """All fields are equal, and arrays are equal bit by bit."""
    before = example()
    after = snapshot_file.decode(data_of(before))
    for field in dataclasses.fields(Snapshot):
        if field.name != "sections":
            assert getattr(after, field.name) == getattr(before, field.name), field.name
    assert after.sections["counts"].tobytes() == before.sections["counts"].tobytes()


def test_a_number_is_given_without_touching_the_rest() -> None:
    """`numbered` returns a copy and does not change the original."""
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
    """Such accounts mean that a record was lost or counted twice."""
    with pytest.raises(SnapshotError, match="do not balance"):
        data_of(example(accounts={Partition("mail", 0): account}))
    broken = header() | {"accounts": [["mail", 0, msgspec.to_builtins(account)]]}
    with pytest.raises(SnapshotError, match="do not balance"):
        snapshot_file.decode(b"".join(container.encode(broken, {})))


@pytest.mark.parametrize("parts", [{"written_ms": "today"}, {"digest": {"all": 1}}, {"lineage": ["learned"]}])
def test_F3_a_header_that_the_reader_refuses_is_not_written(parts: dict[str, Any]) -> None:
    """The writer and the reader check a header by one function."""
    with pytest.raises(SnapshotError, match="header is not that of a snapshot"):
        data_of(example(**parts))


def header() -> dict[str, Any]:
    """Return the header of the example."""
    return container.decode(data_of(example())).header


@pytest.mark.parametrize("name", sorted(header()))
@pytest.mark.parametrize("change", ["absent", "null", "of another type"])
def test_a_header_that_lacks_a_part_is_refused(name: str, change: str) -> None:
    """Each field in turn is missing, null, or a nested list."""
    broken = header()
    if change == "absent":
        del broken[name]
    else:
        broken[name] = None if change == "null" else [[1]]
    with pytest.raises(SnapshotError, match="header is not that of a snapshot"):
        snapshot_file.decode(b"".join(container.encode(broken, {})))


def test_a_part_from_the_future_is_refused() -> None:
    """In a file of this version an unknown field is damage; see `test_newer_minor` for newer ones."""
    with pytest.raises(SnapshotError, match="telepathy"):
        snapshot_file.decode(b"".join(container.encode({**header(), "telepathy": 1}, {})))


def test_a_container_of_something_else_is_refused() -> None:
    """The `format` field distinguishes snapshots from other containers."""
    with pytest.raises(SnapshotError, match="header is not that of a snapshot"):
        snapshot_file.decode(b"".join(container.encode({**header(), "format": FORMAT + "s"}, {})))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def without_nulls(value: object) -> object:
    """Return a value without keys that are null, which mean the same as absent keys."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


@given(then=JSON, now=JSON)
def test_settings_differ_where_they_differ(then: object, now: object) -> None:
    """Equal settings give no line, different ones at least one, in both directions."""
    assert differences(then, then) == []
    lines = differences(then, now)
    equal = fingerprint({"x": without_nulls(then)}) == fingerprint({"x": without_nulls(now)})
    assert (lines == []) == equal
    assert len(differences(now, then)) == len(lines)


def test_a_difference_names_its_path() -> None:
    """A line has the path, the old and the new value; a missing key is shown as null."""
    then = {"model": {"views": [{"name": "a"}], "head": "product", "old": 1}}
    now = {"model": {"views": [{"name": "b"}], "head": "product", "new": {"x": True}}}
    assert differences(then, now) == [
        'model.new: null -> {"x":true}',
        "model.old: 1 -> null",
        'model.views: [{"name":"a"}] -> [{"name":"b"}]',
    ]
