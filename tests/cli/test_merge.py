"""Snapshots are merged so that each record counts once, or refused with what would count twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from streamnb.base.offsets import Account, Accounts, check_accounts
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.cli import app
from streamnb.cli.snapshot.coverage import check_origins, check_sources, united_accounts, went_on
from streamnb.cli.snapshot.merge import merged
from streamnb.config import Settings, build_model, restore_model, snapshot_of
from streamnb.engine import BEGUN
from streamnb.errors import SnapshotError
from streamnb.storage import read_snapshot, write_snapshot
from tests.cli.test_snapshot import LATER, MAIL, learned

P0, P1, P2 = (Partition("mail", n) for n in range(3))
MORE = (("free prize", "spam"), ("agenda of noon", "ham"))


def of(accounts: Accounts, digest: str = "", lineage: Sequence[dict[str, object]] = ()) -> Snapshot:
    """Return a snapshot without a state."""
    digests = {"all": digest, "order_free": digest}
    return Snapshot({}, {}, digests, {}, {}, {}, accounts=accounts, lineage=list(lineage))


def united(*accounts: Accounts, base: Accounts | None = None) -> Accounts:
    """Return the accounts of several snapshots in one."""
    names = [f"{n}.snb" for n in range(len(accounts))]
    return united_accounts([of(each) for each in accounts], names, None if base is None else of(base))


def continued(snapshot: Snapshot, mail: Sequence[tuple[str, str]], partition: Partition) -> Snapshot:
    """Return what an engine makes of a copy of a snapshot in its directory: it reads on in one partition."""
    _, model = restore_model(snapshot)
    for text, label in mail:
        model.learn_one({"text": text}, label)
    at = snapshot.accounts.get(partition, Account(0, 0))
    further = Account(at.start, at.next_offset + len(mail), scored=at.scored + len(mail))
    found = snapshot_of(Settings(), model)
    found.source, found.lineage = snapshot.source, list(snapshot.lineage)
    found.accounts = {**snapshot.accounts, partition: further}
    return found


def one_model(*mail: tuple[str, str]) -> str:
    """Return the order-free digest of one model that learned all."""
    model = build_model(Settings())
    for text, label in mail:
        model.learn_one({"text": text}, label)
    return model.digest()["order_free"]


def test_offsets_that_two_snapshots_have_read_are_named_with_partition_and_file() -> None:
    """One offset is enough, and it does not matter which snapshot comes first."""
    first, second = (
        {P0: Account(0, 9, scored=9)},
        {P0: Account(8, 20, scored=12), P1: Account(0, 3, scored=3)},
    )
    with pytest.raises(SnapshotError) as caught:
        united(first, second)
    assert caught.value.what == (
        "mail-0 was read twice: offsets 0 to 8 in 0.snb and offsets 8 to 19 in 1.snb, so its records would "
        "count twice."
    )
    with pytest.raises(SnapshotError, match=r"offsets 0 to 8 in 1\.snb and offsets 8 to 19 in 0\.snb"):
        united(second, first)
    with pytest.raises(SnapshotError, match=r"offsets 0 to 8 in 0\.snb and offsets 8 to 19 in 2\.snb"):
        united(first, {P2: Account(0, 1, scored=1)}, second)


def test_offsets_that_nobody_has_read_are_not_skipped() -> None:
    """A start from the merged snapshot goes on behind the last offset, so nothing may be missing before."""
    first, second = {P0: Account(0, 9, scored=9)}, {P0: Account(11, 20, scored=9)}
    with pytest.raises(SnapshotError, match=r"up to offset 8 in 0\.snb and from offset 11 on in 1\.snb"):
        united(first, second)


def test_a_partition_that_moved_where_another_engine_ended_is_one_account() -> None:
    """Accounts add up; a snapshot that has read nothing of a partition changes nothing."""
    first = {P0: Account(2, 9, scored=6, gaps=1), P1: Account(5, 5)}
    second = {P0: Account(9, 20, dead_lettered=11), P1: Account(0, 5, scored=5), P2: Account(7, 7)}
    expected = {
        P0: Account(2, 20, scored=6, gaps=1, dead_lettered=11),
        P1: Account(0, 5, scored=5),
        P2: Account(7, 7),
    }
    assert united(first, second) == united(second, first) == expected
    check_accounts(expected)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_however_a_log_was_divided_its_account_is_that_of_one_engine(
    lengths: list[int], draw: object
) -> None:
    """In any order of the snapshots."""
    begin, parts = 0, []
    for n in lengths:
        parts.append({P0: Account(begin, begin + n, scored=n)})
        begin += n
    draw.shuffle(parts)  # type: ignore[attr-defined]
    assert united(*parts) == {P0: Account(0, begin, scored=begin)}


def test_logs_of_one_name_in_two_clusters_are_refused() -> None:
    """The error names the file of each, and what a snapshot does not know is no difference."""
    snapshots = [of({}), of({}), of({})]
    for snapshot, source in zip(
        snapshots, ({}, {"cluster": "a", "topic m": "1"}, {"cluster": "b"}), strict=True
    ):
        snapshot.source = source
    assert check_sources(snapshots[:2], "xy") == {"cluster": "a", "topic m": "1"}
    with pytest.raises(SnapshotError, match="The cluster is a in y and b in z"):
        check_sources(snapshots, "xyz")


@pytest.mark.parametrize("statistics_only", [False, True])
def test_engines_that_began_from_one_snapshot_are_merged_only_with_it(*, statistics_only: bool) -> None:
    """Otherwise what it had learned would count twice; with `base` it counts once, in whatever order."""
    history = learned(MAIL, partition=7)
    begun: dict[str, object] = {"event": BEGUN, "digest": history.digest["all"]}
    without = replace(history, accounts={}, lineage=[begun])
    first, second = continued(without, LATER, P0), continued(without, MORE, P1)
    with pytest.raises(
        SnapshotError, match=f"digest {history.digest['all']} had learned is both in the"
    ) as no:
        merged(first, second, statistics_only=statistics_only)
    assert "--base" in no.value.hint
    found = merged(second, first, base=history, statistics_only=statistics_only)
    assert found.digest["order_free"] == one_model(*MAIL, *LATER, *MORE)
    assert found.values["learned"] == 8
    assert len(found.accounts) == (0 if statistics_only else 2)


def test_engines_that_went_on_from_a_merged_snapshot_are_merged_again() -> None:
    """Each may go on in partitions of its own, also in new ones, any number of times."""
    base = merged(learned(MAIL), learned(LATER, partition=1))
    mail = [*MAIL, *LATER]
    for _ in range(3):
        parts = [continued(base, MORE, P0), continued(base, MAIL, P1), continued(base, LATER, P2)]
        with pytest.raises(SnapshotError, match="would count twice"):
            merged(*parts)
        following = merged(*parts, base=base)
        mail += [*MORE, *MAIL, *LATER]
        assert following.digest["order_free"] == one_model(*mail)
        assert following.values["learned"] == len(mail)
        assert {
            one: part.accounts[one] for one, part in zip((P0, P1, P2), parts, strict=True)
        } == following.accounts
        base = following


def test_only_one_engine_may_go_on_in_a_partition_of_the_base() -> None:
    """Both would have learned the same records."""
    base = learned(MAIL)
    with pytest.raises(SnapshotError, match="mail-0 was read twice: offsets 0 to 5 in the first"):
        merged(continued(base, LATER, P0), continued(base, MORE, P0), base=base)
    idle = continued(base, (), P0)
    assert merged(continued(base, LATER, P0), idle, base=base).digest["order_free"] == one_model(
        *MAIL, *LATER
    )
    assert merged(idle, continued(base, (), P0), base=base).digest["order_free"] == one_model(*MAIL)
    with pytest.raises(SnapshotError, match="The same state and the same offsets are in the first"):
        merged(idle, idle)


def test_a_snapshot_that_did_not_begin_from_the_base_is_refused() -> None:
    """What it never held cannot be subtracted from it."""
    base = learned(MAIL)
    part = continued(base, MORE, P1)
    other = learned(LATER, partition=2)
    with pytest.raises(
        SnapshotError, match="the second snapshot did not begin from the snapshot of `--base`"
    ):
        merged(part, other, base=base)
    begun = replace(part, lineage=[{"event": BEGUN, "digest": base.digest["all"]}])
    with pytest.raises(SnapshotError, match="did not begin from the snapshot of `--base`"):
        went_on([begun, replace(begun, lineage=[{"event": "other"}])], "ab", replace(base, accounts={}))
    assert went_on([part, part], "ab", base)
    assert not went_on([begun, begun], "ab", base)


def test_a_snapshot_is_not_merged_with_one_that_holds_it() -> None:
    """The lineage of a merged snapshot names the digests of its parts, whatever became of their offsets."""
    first, second = learned(MAIL), learned(LATER, partition=1)
    both = merged(first, second, statistics_only=True)
    for pair in ((both, first), (first, both)):
        with pytest.raises(SnapshotError, match="learned is also in the"):
            merged(*pair, statistics_only=True)
    third = learned(MORE, partition=2)
    assert merged(both, third, statistics_only=True).values["learned"] == 8


def test_a_model_that_has_learned_nothing_may_be_held_twice() -> None:
    """Its digest is the same in every engine that has not read a label yet."""
    empty = one_digest()
    event: dict[str, object] = {"event": "merged", "digests": [empty, "a"]}
    other: dict[str, object] = {"event": "merged", "digests": [empty, "b"]}
    check_origins([of({}, "c", [event]), of({}, empty, [other])], "xy", None, empty)


def one_digest() -> str:
    """Return the digest of a model that has learned nothing."""
    return build_model(Settings()).digest()["all"]


def test_several_snapshots_are_merged_by_the_command(tmp_path: Path) -> None:
    """The errors name the files; one snapshot alone is a mistake."""
    parts = [learned(mail, n) for n, mail in enumerate((MAIL, LATER, MORE))]
    paths = [tmp_path / f"{n}.snb" for n in range(3)]
    for path, part in zip(paths, parts, strict=True):
        write_snapshot(path, part)
    run, out = CliRunner(), tmp_path / "all.snb"
    said = run.invoke(app, ["snapshot", "merge", *map(str, paths), "-o", str(out)])
    assert said.exit_code == 0, said.output
    assert "8 messages, offsets of 3 partitions" in said.output
    assert read_snapshot(out).digest["order_free"] == one_model(*MAIL, *LATER, *MORE)
    assert read_snapshot(out).lineage[-1]["digests"] == [part.digest["all"] for part in parts]
    more = tmp_path / "more.snb"
    for path, mail, partition in zip(paths, (MAIL, MORE, LATER), (P0, P1, P2), strict=True):
        path.unlink()
        write_snapshot(path, continued(read_snapshot(out), mail, partition))
    words = ["snapshot", "merge", *map(str, paths), "-o", str(more), "--base", str(out)]
    said = run.invoke(app, words)
    assert "16 messages, offsets of 3 partitions" in said.output
    for arguments, what in (
        ([str(paths[0])], "One snapshot cannot be merged"),
        (list(map(str, paths[:2])), f"is both in {paths[0]} and in {paths[1]}"),
    ):
        said = run.invoke(app, ["snapshot", "merge", *arguments, "-o", str(tmp_path / "no.snb")])
        assert what in str(said.exception)
