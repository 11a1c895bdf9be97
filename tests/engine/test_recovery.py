"""A restart resumes at its snapshot, or stops and says what is missing and which setting would allow it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from streamnb.base.batch import Batch, Scores
from streamnb.base.offsets import Account, Accounts, check_accounts
from streamnb.base.record import Partition, RecordBatch
from streamnb.base.snapshot import Snapshot
from streamnb.engine.recovery import CatchUp, skip
from streamnb.engine.settings import EngineSettings, Pace
from streamnb.engine.snapshot_writer import UnconfirmedError
from streamnb.errors import AccountingError, PositionError, SnapshotError, TransportError
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.storage import snapshot_file
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.memory import CRASH, Crash, MemoryLog, MemorySource
from streamnb.transports.memory_transactions import MemoryBroker, MemoryTransactions
from streamnb.transports.positions import check_positions
from tests.engine.test_engine import P0, MemoryStore, Rig, filled, plain_loop, rig, stream
from tests.engine.test_transactions import transactional

SKIP = EngineSettings(start="earliest", batch_records_max=7, on_data_loss="skip")
A, B, C, D = (Partition("mail", n) for n in range(4))


def test_every_missing_range_is_named_with_the_setting_that_would_allow_it() -> None:
    """The error names all ranges, because an operator decides about all of them."""
    at, begin, end = {A: 4, B: 9, C: 2, D: 3}, {A: 6, B: 0, D: 3}, {A: 8, B: 7, D: 3}
    with pytest.raises(PositionError) as caught:
        check_positions(at, begin, end)
    assert caught.value.what == (
        "mail-0 begins at offset 6: offsets 4 to 5 (2 records at most) are missing. "
        "mail-1 ends at offset 7: offsets 7 to 8, already learned, are missing. "
        "mail-2 is gone; the snapshot's next offset in it is 2."
    )
    assert 'engine.on_data_loss = "skip"' in caught.value.hint
    assert caught.value.resume == {A: 6, B: 7, C: None}


def test_what_was_skipped_is_accounted_for_and_told() -> None:
    """Records never read are lost; a shorter log gets a new account; a removed partition has none."""
    accounts: Accounts = {A: Account(0, 4, scored=4), B: Account(0, 9, scored=9), C: Account(0, 2, gaps=2)}

    assert skip(accounts, {A: 6, B: 7, C: None}) == [
        {"event": "data_loss", "partition": "mail-0", "from": 4, "to": 6},
        {"event": "data_loss", "partition": "mail-1", "from": 7, "to": 9, "learned": True},
        {"event": "data_loss", "partition": "mail-2", "from": 2, "to": None},
    ]
    assert accounts == {A: Account(0, 6, scored=4, lost=2), B: Account(7, 7)}
    check_accounts(accounts)


def test_B6_records_that_retention_removed_stop_the_engine_or_are_noted_for_ever() -> None:
    """By default the engine stops; with `skip`, every later snapshot records what was lost."""
    it = rig(stream(10))
    it.run()
    for value in stream(10, seed=2):
        it.log.append(value)
    it.log.delete_before(0, 12)
    with pytest.raises(PositionError, match=r"offsets 10 to 11 .* are missing"):
        it.run()

    it.run(settings=SKIP)
    for value in stream(3, seed=3):
        it.log.append(value)
    summary = it.run()
    newest = it.store().newest()
    assert newest is not None
    assert newest.lineage == [{"event": "data_loss", "partition": "memory-0", "from": 10, "to": 12}]
    assert (summary.accounts[P0].lost, summary.accounts[P0].balance()) == (2, 0)
    assert summary.accounts[P0].next_offset == it.log.end[0]


def test_B7_a_log_that_ends_before_the_position_stops_the_engine_or_begins_a_new_account() -> None:
    """Learned records are gone from the log; new records with their offsets are read."""
    it = rig(stream(10))
    it.run()
    shorter = MemoryLog()
    for value in stream(4, seed=2):
        shorter.append(value)
    it.log = shorter
    with pytest.raises(PositionError, match="ends at offset 4: offsets 4 to 9, already learned, are missing"):
        it.run()

    assert it.run(settings=SKIP).accounts[P0] == Account(4, 4)
    newest = it.store().newest()
    assert newest is not None
    assert newest.lineage[0]["learned"] is True


def test_B7_a_topic_made_again_is_refused_whatever_is_allowed() -> None:
    """Its offsets belong to other records, so `skip` does not apply."""
    it = rig(stream(10))
    it.run()
    it.log = MemoryLog(topic_id="memory-2")
    with pytest.raises(PositionError, match="Topic memory was re-created: its id is now memory-2"):
        it.run(settings=SKIP)


def test_a_snapshot_without_offsets_is_resumed_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A model that Python saved, put among an engine's snapshots, learned every message a second time."""
    it, store = rig(stream(10)), MemoryStore()
    learned = it.run(store=store).learned
    resumed = [line for line in caplog.messages if "has no offsets" in line]
    saved = replace(snapshot_file.decode(store.files[-1]), accounts={}, source={})
    store.files.append(b"".join(snapshot_file.encode(saved)))
    summary = it.run(store=store)

    assert not resumed
    (warning,) = [line for line in caplog.messages if "has no offsets" in line]
    assert "the stream is read from `engine.start`" in warning
    assert summary.learned == learned


class Replaced(MemorySource):
    """A source whose topic is re-created, with the same records, right before its third poll.

    Attributes
    ----------
    silent : int
        How often it then does not tell its identity first.
    """

    polls = 0
    silent = 0

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Poll."""
        self.polls += 1
        if self.polls == 3:
            self._log.topic_id = "memory-2"
        return super().poll(records_max, timeout_ms)

    def identity(self) -> Mapping[str, str]:
        """Return the identity."""
        if self.polls >= 3 and self.silent:
            self.silent -= 1
            raise TransportError("No broker answered.")
        return super().identity()


def test_F6_nothing_read_from_a_topic_recreated_under_the_engine_is_kept() -> None:
    """The identity is compared before each snapshot; the error names the topic and not its retention."""
    it = rig(stream(60))
    with pytest.raises(PositionError, match="Topic memory was re-created: its id is now memory-2") as caught:
        it.run(source=Replaced(it.log))
    newest = it.store().newest()
    assert newest is not None
    assert newest.accounts[P0].next_offset <= 14
    assert "retention" not in str(caught.value)


def test_F6_scores_of_a_topic_recreated_under_the_engine_are_never_committed() -> None:
    """The identity is compared before each transaction is committed, too."""
    it, broker = rig(stream(60)), MemoryBroker()
    with pytest.raises(PositionError, match="was re-created"):
        it.run(**transactional(it, broker, MemoryTransactions), source=Replaced(it.log))
    assert broker.committed == {P0: 14}


def test_F6_a_position_lost_with_a_recreated_topic_is_reported_as_such() -> None:
    """A shorter new log does not hold the position: that is no matter of retention."""
    it = rig(stream(60))
    source = Replaced(it.log)

    def gone(records_max: int, timeout_ms: int) -> list[RecordBatch]:  # noqa: ARG001 - as in Source
        it.log.topic_id = "memory-2"
        raise PositionError("The log no longer holds the position.", "Lengthen the topic's retention.")

    source.poll = gone  # type: ignore[method-assign]
    with pytest.raises(PositionError, match="was re-created"):
        it.run(source=source)


def test_F6_a_snapshot_waits_until_the_identity_is_known(caplog: pytest.LogCaptureFixture) -> None:
    """While brokers do not tell it the stream goes on; the last snapshot then stays in force."""
    it = rig(stream(60))
    source = Replaced(it.log)
    source.silent = 1
    with pytest.raises(PositionError, match="was re-created"):
        it.run(source=source)
    assert "it is not known whether a topic was re-created: No broker answered." in caplog.messages
    before = it.store().newest()
    it.log.topic_id = "memory-1"
    silent = Replaced(it.log)
    engine = it.engine(source=silent)
    recover = engine.recovery.run

    def recovered(begin_from: Snapshot | None) -> CatchUp:
        done = recover(begin_from)
        silent.polls, silent.silent = 3, 1000
        return done

    engine.recovery.run = recovered  # type: ignore[method-assign]
    with pytest.raises(UnconfirmedError, match="No snapshot was written"):
        engine.run()
    engine.close()
    after = it.store().newest()
    assert before is not None
    assert after is not None
    assert after.sequence == before.sequence


def test_F6_a_snapshot_that_could_not_be_confirmed_is_taken_at_the_end() -> None:
    """Although no record came after it."""
    it = rig(stream(14))
    asked: list[int] = []

    class Silent(MemorySource):
        def identity(self) -> Mapping[str, str]:
            asked.append(len(asked))
            if len(asked) == 2:  # at the snapshot after the last record; the first time is the start
                raise TransportError("No broker answered.")
            return super().identity()

    it.run(source=Silent(it.log), pace=Pace(snapshot_interval_records=14))
    newest = it.store().newest()
    assert len(asked) == 3
    assert newest is not None
    assert newest.accounts[P0].next_offset == 14


def test_B8_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    """Its account begins there too."""
    it = Rig(filled(stream(10)), rig([]).store)
    it.run()
    wider = filled(stream(10))
    wider.begin.append(0)
    wider.end.append(0)
    for value in stream(5, seed=4):
        wider.append(value, 1)
    it.log = wider
    it.scores.begin.append(0)
    it.scores.end.append(0)
    summary = it.run()
    assert {p.number: account.next_offset for p, account in summary.accounts.items()} == {0: 10, 1: 5}


def test_B8_a_partition_that_is_added_under_the_engine_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read without a restart, and a restart resumes there; a topic made again is refused."""
    it = rig(stream(10))
    added = MemorySource.added

    def grow(log: MemoryLog) -> None:
        log.begin.append(0)
        log.end.append(0)

    def grown(source: MemorySource) -> Mapping[Partition, int]:
        if len(it.log.elements) == 10 and it.scores.elements:
            grow(it.log)
            for value in stream(5, seed=4):
                it.log.append(value, 1)
        return added(source)

    monkeypatch.setattr(MemorySource, "added", grown)
    grow(it.scores)
    first = {p.number: account.next_offset for p, account in it.run().accounts.items()}
    second = {p.number: account.next_offset for p, account in it.run().accounts.items()}

    assert first == {0: 10, 1: 4}  # all records present at the start, and those of the same poll
    assert second == {0: 10, 1: 5}
    assert it.model.digest()["order_free"] == plain_loop(it.log).digest()["order_free"]

    def made_again(source: MemorySource) -> Mapping[Partition, int]:
        it.log.topic_id = "memory-2"
        if len(it.log.end) == 2:
            grow(it.log)
        return added(source)

    monkeypatch.setattr(MemorySource, "added", made_again)
    it.log.append(b"{}")
    with pytest.raises(
        PositionError, match="its id is now memory-2, but it was memory-1 when the engine opened it"
    ):
        it.run()


def test_C2_a_crash_during_recovery_changes_nothing() -> None:
    """However often a restart crashes, the next one begins from the same snapshot."""
    it = rig(stream(30))
    it.run()
    for _ in range(5):
        it.log.append(CRASH)
    for value in stream(30, seed=2):
        it.log.append(value)
    crashes = 0
    while True:
        try:
            summary = it.run()
            break
        except Crash:
            crashes += 1
    assert crashes == 5
    assert summary.digest == plain_loop(it.log).digest()


def test_the_end_of_catching_up_is_a_metric_and_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """Both give the number of records read after the snapshot."""
    it = rig(stream(20))
    with caplog.at_level(logging.INFO, logger="streamnb.engine"):
        it.run()
    assert it.metrics.registry.get_sample_value("streamnb_ready") == 1.0
    assert it.metrics.registry.get_sample_value("streamnb_replayed_records_total") == 20.0
    assert [line for line in caplog.messages if "caught up" in line] == ["caught up with 20 records in 0.0 s"]
    it.run()
    assert it.metrics.registry.get_sample_value("streamnb_replayed_records_total") == 0.0


def test_what_has_no_end_is_never_behind() -> None:
    """A log without an end needs no catching up; and once done, catching up stays done."""
    accounts = {A: Account(0, 3, gaps=3)}
    assert CatchUp(None).is_done(accounts)
    behind = CatchUp({A: 4})
    assert not behind.is_done(accounts)
    accounts[A].next_offset = 4
    assert behind.is_done(accounts)
    accounts[A].next_offset = 0
    assert behind.is_done(accounts)


@pytest.mark.parametrize(
    "account",
    [Account(0, 5, scored=4), Account(0, 5, scored=6), Account(0, 5, scored=6, dead_lettered=-1)],
    ids=["lost", "counted twice", "below 0"],
)
def test_what_does_not_add_up_is_never_kept(account: Account) -> None:
    """The engine checks its accounts before every snapshot; a wrong one is a defect and stops it."""
    with pytest.raises(AccountingError, match="defect of streamnb") as caught:
        check_accounts({P0: account})
    assert caught.value.exit_code == 70
    it = rig(stream(10))
    engine = it.engine()
    engine.recovery.run(None)
    engine.progress.accounts[P0] = account
    engine.progress.changed = True
    with pytest.raises(AccountingError):
        engine.snapshots.take()
    assert it.store().newest() is None
    shown = it.metrics.registry.get_sample_value(
        "streamnb_unaccounted_records", {"topic": "memory", "partition": "0"}
    )
    assert shown == account.balance()
    engine.close()


def test_D14_damaged_snapshots_alone_stop_the_engine(tmp_path: Path) -> None:
    """Starting over without being asked would silently forget everything."""
    it = Rig(filled(stream(20)), lambda: SnapshotDirectory(tmp_path))
    it.run()
    for path in tmp_path.glob("*.snb"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotError, match="None of the 2 snapshots"):
        it.run()


class Clumsy(NaiveBayes):
    """A model that fails within the update of its third batch, after learning the batch's messages."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(TEXT_ONLY)
        self.error = error
        self.batches_left = 3

    def step(self, batch: Batch, *, score: bool = True, learn: bool = True) -> Scores:
        """Step the batch; raise the error at the third."""
        scores = super().step(batch, score=score, learn=learn)
        self.batches_left -= len(batch) > 0
        if not self.batches_left:
            raise self.error
        return scores


@pytest.mark.parametrize("error", [MemoryError(), ValueError("a hook's"), RecursionError()], ids=repr)
def test_C6_C7_an_error_half_way_through_an_update_is_neither_ignored_nor_kept(error: Exception) -> None:
    """It ends the process as a kill would; the last snapshot is the state at its offsets."""
    it = rig(stream(40))
    with pytest.raises(type(error)):
        it.run(classifier=Clumsy(error))
    newest = it.store().newest()
    assert newest is not None
    kept = newest.accounts[P0].next_offset
    assert newest.digest == plain_loop(filled(stream(40)[:kept])).digest()
    assert kept < 21
    assert it.run().digest == plain_loop(it.log).digest()
