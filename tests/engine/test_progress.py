"""An engine that reads some partitions keeps the offsets of the others in its snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.engine.lag import Lag
from streamnb.engine.progress import Progress
from streamnb.engine.settings import EngineSettings, Summary
from streamnb.transports.memory import MemoryLog, MemorySource
from streamnb.wire.score import Output
from tests.engine.test_engine import P0, Rig, message, plain_loop, rig, stream

P1 = Partition("memory", 1)
LATEST = EngineSettings(start="latest", batch_records_max=7)


def run(it: Rig, *partitions: int, **parts: Any) -> Summary:  # noqa: ANN401 - parts of an engine
    """Run an engine over some partitions to their ends."""
    return it.run(source=MemorySource(it.log, partitions or None), **parts)


def newest(it: Rig) -> Snapshot:
    """Return the newest snapshot."""
    found = it.store().newest()
    assert found is not None
    return found


def test_an_account_that_rests_is_no_position_to_read_and_is_kept() -> None:
    """It goes on where it was if its partition is read again."""
    progress = Progress(accounts={P0: Account(0, 7, scored=7), P1: Account(0, 3, scored=3)})
    progress.rest([P0])
    assert progress.open_accounts({P0: 7}) == []
    assert progress.next_offsets() == {P0: 7}
    assert progress.summary.accounts is progress.accounts
    assert progress.all_accounts() == {P0: Account(0, 7, scored=7), P1: Account(0, 3, scored=3)}
    assert not progress.changed
    assert progress.open_accounts({P1: 9}) == [P1]
    assert progress.changed


def test_only_the_chosen_partitions_are_read_to_their_end() -> None:
    """The end of a run, the metrics and the committed offsets concern no other one."""
    it = rig(stream(40), partitions=2)
    summary = run(it, 1)
    assert summary.accounts == newest(it).accounts
    assert {one: account.next_offset for one, account in summary.accounts.items()} == {P1: 20}
    assert {sample.labels["partition"] for sample in samples(it, "streamnb_next_offset")} == {"1"}


def samples(it: Rig, name: str) -> list[Any]:
    """Return the samples of a metric of the last run."""
    found = [sample for metric in it.metrics.registry.collect() for sample in metric.samples]
    return [sample for sample in found if sample.name == name]


def test_a_partition_that_is_no_longer_read_keeps_its_offset_and_goes_on_there(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken out and put back, it is learned once, and nothing is committed for it while it rests."""
    committed: list[set[Partition]] = []
    commit = Lag.commit

    def kept(self: Lag, offsets: Any, next_offsets: Any) -> None:  # noqa: ANN401 - as of `Lag.commit`
        committed.append(set(offsets))
        commit(self, offsets, next_offsets)

    monkeypatch.setattr(Lag, "commit", kept)
    caplog.set_level("INFO", "streamnb.engine")
    it = rig(stream(40), partitions=2)
    run(it)
    assert committed[-1] == {P0, P1}
    for i, value in enumerate(stream(20, seed=2)):
        it.log.append(value, i % 2)
    resting = newest(it).accounts[P1]
    committed.clear()
    run(it, 0)
    assert "kept for later, and not read by this process: memory-1 @ 20" in caplog.text
    assert set().union(*committed) == {P0}
    assert newest(it).accounts[P1] == resting
    assert newest(it).accounts[P0].next_offset == 30
    run(it)
    assert newest(it).accounts[P1].next_offset == 30
    assert newest(it).digest["order_free"] == plain_loop(it.log).digest()["order_free"]


def test_a_partition_that_is_chosen_later_begins_where_the_start_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has its offset, because its older records are not learned here."""
    caplog.set_level("INFO", "streamnb.engine")
    it = rig(stream(40), partitions=2)
    run(it, 0)
    run(it, 0, 1, settings=LATEST)
    assert newest(it).accounts[P1] == Account(20, 20)
    assert "not in snapshot 2: memory-1 @ 20" in caplog.text


def test_a_score_names_the_offsets_of_partitions_that_rest() -> None:
    """The field `state` is all that the model had learned."""
    log = MemoryLog(2)
    for number in range(2):
        log.append(message(number, "win money", "spam"), number)
    it = rig([])
    it.log = log
    run(it)
    log.append(message(2, "lunch", None), 0)
    run(it, 0, output=Output(state=True))
    assert it.published()[-1]["state"] == {"memory-0": 1, "memory-1": 1}
