"""Exactly-once scores: however often the engine dies, each input has one committed score or dead letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.protocols import Transactions
from streamnb.base.record import Partition, RecordBatch
from streamnb.engine.published_scores import (
    BEGUN,
    DELIVERY,
    MERGED,
    PUBLISHED,
    delivery_noted,
    published_before,
)
from streamnb.engine.settings import EngineSettings, Pace
from streamnb.errors import (
    DeliveryError,
    FencedError,
    PositionError,
    SettingsError,
    TooLargeError,
    TransactionError,
)
from streamnb.transports.memory import Crash, MemoryLog, MemorySink, MemorySource
from streamnb.transports.memory_transactions import MemoryBroker, MemoryTransactions
from tests.engine.test_engine import HolesSource, Rig, filled, message, plain_loop, put_aside, rig, stream

P0 = Partition("memory", 0)
NOTE: dict[str, object] = {"event": DELIVERY, "scores": "exactly once", "group": "memory"}


class Dying(MemoryTransactions):
    """Transactions whose process dies before or after the commits with the given numbers."""

    commits = 0
    deaths: Mapping[int, str] = {}

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit, and crash before or after as `deaths` says."""
        number, Dying.commits = Dying.commits, Dying.commits + 1
        if Dying.deaths.get(number) == "before":
            raise Crash
        super().commit(next_offsets)
        if Dying.deaths.get(number) == "after":
            raise Crash


def transactional(
    it: Rig,
    broker: MemoryBroker,
    kind: type[MemoryTransactions],
    interval_ms: int = 0,
    *,
    records_max: int = 7,
) -> dict[str, Any]:
    """Return the parts of an engine that publishes scores exactly once."""
    return {
        "transactions": kind(broker, [it.scores, it.aside]),
        "settings": EngineSettings(
            start="earliest",
            scores="exactly_once",
            batch_records_max=records_max,
        ),
        "pace": Pace(snapshot_interval_records=20, transaction_interval_ms=interval_ms),
    }


def assert_each_input_is_published_once(it: Rig) -> None:
    """Check that each input has one score or one dead letter."""
    scored = [
        (score["source"]["partition"], score["source"]["offset"])
        for number in range(len(it.scores.end))
        for score in it.published(number)
    ]
    aside = put_aside(it.aside)

    assert len(scored) == len(set(scored))
    assert len(aside) == sum(it.aside.end)
    assert not set(scored) & aside
    assert set(scored) | aside == {(n, at) for n, end in enumerate(it.log.end) for at in range(end)}


@settings(deadline=None, max_examples=30)
@given(
    partitions=st.sampled_from([1, 3]),
    interval_ms=st.sampled_from([0, 100]),
    deaths=st.dictionaries(st.integers(0, 25), st.sampled_from(["before", "after"]), max_size=8),
)
def test_each_input_is_published_once_however_often_it_dies(
    partitions: int, interval_ms: int, deaths: dict[int, str]
) -> None:
    """It dies right before or right after a commit; the state still equals the plain loop's."""
    it, broker = rig(stream(120), partitions), MemoryBroker()
    Dying.commits, Dying.deaths = 0, deaths
    while True:
        try:
            summary = it.run(**transactional(it, broker, Dying, interval_ms))
        except Crash:
            continue
        break

    assert_each_input_is_published_once(it)
    assert all(account.balance() == 0 for account in summary.accounts.values())
    assert summary.digest["order_free"] == plain_loop(it.log).digest()["order_free"]
    if partitions == 1:
        assert summary.digest == plain_loop(it.log).digest()


@pytest.mark.parametrize("dies_at", range(2, 8))
@pytest.mark.parametrize("records_max", [1, 2, 3, 4, 5, 8, 9, 40])
def test_a_poll_across_a_committed_offset_loses_and_repeats_nothing(dies_at: int, records_max: int) -> None:
    """Polls after a restart need not end where those before did; scores, dead letters and stubs alike."""
    kinds = {1: b"torn", 2: b"torn", 3: b"{"}
    values = [kinds.get(i % 5, value) for i, value in enumerate(stream(60))]
    it, broker = rig(values), MemoryBroker()
    Dying.commits, Dying.deaths = 0, {dies_at: "after"}
    with pytest.raises(Crash):
        it.run(source=HolesSource(it.log), **transactional(it, broker, Dying))
    committed = broker.committed[P0]
    assert 0 < committed < 60
    it.run(
        source=HolesSource(it.log),
        **transactional(it, broker, MemoryTransactions, records_max=records_max),
    )

    assert_each_input_is_published_once(it)


class _Rising(MemoryTransactions):
    """Transactions in which no partition's committed offset may fall."""

    commits = 0

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Compare with the offsets committed before, then commit."""
        _Rising.commits += 1
        before = self._broker.committed
        assert all(next_offsets[one] >= at for one, at in before.items()), (before, next_offsets)
        super().commit(next_offsets)


def test_a_commit_never_moves_a_partition_back() -> None:
    """Without its snapshots an engine passes what was published in one partition before that in another."""
    it, broker = rig(stream(60), 3), MemoryBroker()
    it.run(**transactional(it, broker, MemoryTransactions))
    for i, value in enumerate(stream(30, seed=2)):
        it.log.append(value, i % 2)
    lost = Rig(MemoryLog(3), rig([]).store)
    lost.scores, lost.aside = it.scores, it.aside
    for number in (0, 1, 2):  # the third partition comes last, so it lies behind for long
        for record in it.log.records(number):
            lost.log.append(record.value, number)
    _Rising.commits = 0
    lost.run(**transactional(lost, broker, _Rising))

    assert _Rising.commits > 3
    assert_each_input_is_published_once(lost)


def test_the_scores_of_a_slow_stream_are_committed_after_each_poll() -> None:
    """A poll that is not full has read all there is: its reader need not wait for the interval."""
    it, broker = rig(stream(40)), MemoryBroker()
    seen: list[int] = []

    class Slow(MemorySource):
        def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
            seen.append(broker.committed.get(P0, 0))
            return super().poll(min(records_max, 4), timeout_ms)

    parts = transactional(it, broker, MemoryTransactions, interval_ms=10**9)
    it.run(source=Slow(it.log), **(parts | {"pace": Pace(transaction_interval_ms=10**9)}))

    assert seen == list(range(0, 40, 4))


def test_a_second_learner_shuts_the_first_one_out() -> None:
    """Nobody sees the scores that the first one had not committed."""
    it, broker = rig(stream(30)), MemoryBroker()
    engine = it.engine(**transactional(it, broker, MemoryTransactions))
    engine.delivery.sink = _Overtaken(it, broker)
    with pytest.raises(FencedError):
        engine.run()
    engine.close()
    it.run(**transactional(it, broker, MemoryTransactions))

    assert_each_input_is_published_once(it)


class _Overtaken(MemorySink):
    """A sink that starts another learner of the same name when it publishes."""

    def __init__(self, it: Rig, broker: MemoryBroker) -> None:
        super().__init__(it.scores)
        self._other: Transactions = MemoryTransactions(broker, [])

    def publish(self, *columns: Any) -> None:  # noqa: ANN401 - as MemorySink has them
        """Publish, then let the other learner recover."""
        super().publish(*columns)
        self._other.recover([])


class _Refusing(MemorySink):
    """A sink that delivers only the first batch."""

    def publish(self, *columns: Any) -> None:  # noqa: ANN401 - as MemorySink has them
        """Publish the first batch; raise an error for the next."""
        if sum(self._log.end):
            raise DeliveryError("A record was not delivered.")
        super().publish(*columns)


def test_a_record_that_is_not_delivered_leaves_the_outcome_of_its_transaction_open() -> None:
    """Then a new engine must resume from the last snapshot."""
    it, broker = rig(stream(30)), MemoryBroker()
    parts = transactional(it, broker, MemoryTransactions)
    with pytest.raises(TransactionError):
        it.run(**parts, sink=_Refusing(it.scores))
    it.run(**transactional(it, broker, MemoryTransactions))

    assert_each_input_is_published_once(it)


class _Full(MemorySink):
    """A sink whose topic takes no record of this size."""

    def publish(self, *columns: Any) -> None:  # noqa: ANN401, ARG002 - as MemorySink has them
        """Refuse every record."""
        raise TooLargeError("A record was not delivered.")


def test_F8_a_record_that_is_too_large_is_not_tried_again() -> None:
    """A new engine would fail on it too, so the process ends with the exit code of a wrong setting."""
    it, broker = rig(stream(30)), MemoryBroker()
    with pytest.raises(TooLargeError) as caught:
        it.run(**transactional(it, broker, MemoryTransactions), sink=_Full(it.scores))
    assert caught.value.exit_code == 2
    assert not isinstance(caught.value, TransactionError)


def test_offsets_are_committed_by_transactions_alone() -> None:
    """A snapshot's offsets are lower: committed too, they would cause scores to be published twice."""
    it, broker = rig(stream(60)), MemoryBroker()
    engine = it.engine(**transactional(it, broker, MemoryTransactions))
    engine.run()
    engine.close()

    assert broker.committed == {P0: 60}
    assert engine.source.committed == {}  # type: ignore[attr-defined]


def test_going_over_to_exactly_once_begins_with_the_state() -> None:
    """What was published at least once is not published again; the lineage notes each change of delivery."""
    it, broker = rig([message(i, "lunch", "ham") for i in range(20)]), MemoryBroker()
    it.run()
    for i in range(20, 30):
        it.log.append(message(i, "lunch", "ham"))
    it.run(**transactional(it, broker, MemoryTransactions))
    newest = it.store().newest()

    assert_each_input_is_published_once(it)
    assert newest is not None
    assert newest.lineage == [NOTE]

    it.run()
    newest = it.store().newest()

    assert newest is not None
    assert newest.lineage == [NOTE, {"event": DELIVERY, "scores": "at least once", "group": None}]


@pytest.mark.parametrize("begun_at", ["earliest", "latest"])
def test_F7_without_the_snapshots_scores_are_not_published_again(
    begun_at: Literal["earliest", "latest"], caplog: pytest.LogCaptureFixture
) -> None:
    """The records are learned again; the lineage and a warning name the offset up to which that is all."""
    it, broker = rig(stream(60)), MemoryBroker()
    it.run(**transactional(it, broker, MemoryTransactions))
    for value in stream(20, seed=2):
        it.log.append(value)
    lost = Rig(it.log, rig([]).store)
    lost.scores, lost.aside = it.scores, it.aside
    parts = transactional(it, broker, MemoryTransactions)
    parts["settings"] = EngineSettings(start=begun_at, scores="exactly_once", batch_records_max=7)
    summary = lost.run(**parts)
    newest = lost.store().newest()

    assert newest is not None
    if begun_at == "latest":
        assert summary.records == 0
        assert newest.lineage == [NOTE]
        return
    assert_each_input_is_published_once(lost)
    assert summary.digest == plain_loop(it.log).digest()
    assert newest.lineage == [NOTE | {PUBLISHED: {"memory-0": 60}}]
    assert "up to memory-0 @ 60" in caplog.text
    assert broker.committed == {P0: 80}

    it.log.append(message(80, "lunch", "ham"))
    lost.run(**transactional(it, broker, MemoryTransactions))
    assert_each_input_is_published_once(lost)


def test_F7_published_scores_of_another_log_stop_the_engine() -> None:
    """An offset past the end belongs to other records, so nothing is known about those of this log."""
    with pytest.raises(
        PositionError, match="up to offset 31 of memory-0 were published under the group memory"
    ):
        published_before([], "memory", {P0: 0}, {P0: 31}, {P0: 30})


@pytest.mark.parametrize("committed", [{}, {P0: 6}, {P0: 31}])
def test_committed_offsets_that_cannot_be_right_stop_the_engine(committed: dict[Partition, int]) -> None:
    """If offsets expired, were reset or are past the end, it is not known which scores were published."""
    with pytest.raises(PositionError, match="The group memory"):
        published_before([NOTE], "memory", {P0: 7}, committed, {P0: 30})


def test_another_group_is_refused() -> None:
    """Its offsets do not tell which scores were published."""
    with pytest.raises(SettingsError, match=r"used the group memory, but `source\.group` is now other"):
        published_before([NOTE], "other", {P0: 7}, {P0: 7}, {P0: 30})


def test_F7_what_came_before_a_start_from_a_snapshot_is_another_engines_delivery() -> None:
    """`--from` with another group publishes every score; with the same group none twice."""
    begun: list[dict[str, object]] = [NOTE, {"event": BEGUN, "digest": "d"}]
    assert published_before(begun, "other", {P0: 0}, {}, {P0: 30})[0] == {P0: 0}
    assert published_before(begun, "memory", {P0: 0}, {P0: 7}, {P0: 30})[0] == {P0: 7}
    assert delivery_noted(begun, None) is None


def test_a_partition_added_since_has_no_committed_offset() -> None:
    """All of its scores are published."""
    assert published_before([NOTE], "memory", {P0: 7, Partition("memory", 1): 0}, {P0: 9}, None) == (
        {P0: 9},
        None,
    )


def test_a_partition_that_was_chosen_since_has_no_committed_offset_either() -> None:
    """It may begin anywhere; a partition that the snapshot had is another matter."""
    added = Partition("memory", 1)
    offsets = {P0: 7, added: 5}
    assert published_before([NOTE], "memory", offsets, {P0: 9}, None, [added]) == ({P0: 9}, None)
    # The engine that chose it first was killed before its snapshot: after or before it went beyond the start.
    for at, published in ((8, 8), (3, 5)):
        found = published_before([NOTE], "memory", offsets, {P0: 9, added: at}, {added: 9}, [added])
        assert found == ({P0: 9, added: published}, None)
    with pytest.raises(PositionError, match="has committed offset 10 in memory-1"):
        published_before([NOTE], "memory", offsets, {P0: 9, added: 10}, {added: 9}, [added])
    with pytest.raises(PositionError, match="has committed no offset in memory-1"):
        published_before([NOTE], "memory", offsets, {P0: 9}, None)


def test_a_merged_snapshot_may_be_delivered_under_any_group(caplog: pytest.LogCaptureFixture) -> None:
    """Each engine had a group of its own; what they published after their snapshots is published again."""
    lineage: list[dict[str, object]] = [NOTE, {**NOTE, "group": "other"}, {"event": MERGED, "digests": []}]
    found = published_before(lineage, "memory", {P0: 7, Partition("memory", 1): 5}, {P0: 9}, None)
    assert found[0] == {P0: 9, Partition("memory", 1): 5}
    assert "under the groups memory, other." in caplog.text
    assert delivery_noted(lineage, None) is None
    caplog.clear()
    published_before([*lineage, {"event": BEGUN, "digest": "d"}], "memory", {P0: 0}, {}, None)
    published_before([], "memory", {P0: 0}, {}, None)
    assert caplog.messages == []


def test_the_last_note_of_how_scores_are_delivered_counts() -> None:
    """Without any event, delivery is at least once."""
    assert delivery_noted([], None) is None
    assert delivery_noted([NOTE], "memory") is None
    assert delivery_noted([NOTE], None) is not None


def test_without_transactions_a_lost_record_is_a_matter_of_delivery() -> None:
    """The error stays a `DeliveryError`, and nothing is retried inside the process."""
    it = Rig(filled(stream(30)), rig([]).store)
    with pytest.raises(DeliveryError) as caught:
        it.run(sink=MemorySink(it.scores, fail_after=9))

    assert type(caught.value) is DeliveryError
    assert orjson.loads(it.scores.records(0)[0].value or b"")["id"]
