"""What only lag tools and the metrics page need never holds the stream up, and is shown while it is idle."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

import pytest

from streamnb.base.record import Partition, RecordBatch
from streamnb.engine import lag
from streamnb.errors import MissingTopicError, TransportError
from streamnb.transports.memory import MemoryLog, MemorySource
from tests.engine.test_engine import P0, rig, stream


class Away(MemorySource):
    """A source whose brokers answer neither a commit nor a question for the ends, once it was opened."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.asked: list[str] = []
        self.back = threading.Event()

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Wait for an answer."""
        self.asked.append("commit")
        self.back.wait(60)
        super().commit(next_offsets)

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """Wait for an answer, except at the start."""
        if threading.current_thread() is not threading.main_thread():
            self.asked.append("ends")
            self.back.wait(60)
        return super().end_offsets()


def test_F22_brokers_that_do_not_answer_lag_tools_do_not_stop_the_stream(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another thread commits and asks for the lag; a run waits for it only at its end, for a short time."""
    monkeypatch.setattr(lag, "WAIT_S", 0.2)
    it = rig(stream(60))
    source = Away(it.log)
    began_s = time.monotonic()
    assert it.run(source=source).records == 60
    assert time.monotonic() - began_s < 10
    assert source.asked == ["ends"]
    assert "the last offsets were not committed within 0 s; only lag tools need them" in caplog.messages
    source.back.set()


def test_F22_the_newest_offsets_are_committed_when_the_brokers_are_back() -> None:
    """Older ones, which waited for their turn, are left out."""
    it = rig(stream(60))
    source = Away(it.log)
    engine = it.engine(source=source)
    poll = engine.source.poll

    def polled(records_max: int, timeout_ms: int) -> list[RecordBatch]:
        if engine.progress.accounts[P0].next_offset >= 50:
            source.back.set()
        return poll(records_max, timeout_ms)

    engine.source.poll = polled  # type: ignore[method-assign]
    engine.run()
    engine.close()
    assert source.committed == {P0: 60}
    assert source.asked.count("commit") <= 3


def test_a_look_at_the_lag_keeps_the_commit_that_waits() -> None:
    """Lag tools would show old offsets until the next snapshot."""
    it = rig(stream(20))
    source = Away(it.log)
    source.open({}, "earliest")
    watch = lag.Lag(source, it.clock, it.metrics)
    watch.commit({P0: 5}, {P0: 5})
    with watch._turn:
        assert watch._turn.wait_for(lambda: watch._busy, 30)
    watch.commit({P0: 10}, {P0: 10})
    it.clock.advance(lag.LOOK_INTERVAL_S)
    watch.tend(lambda: {P0: 12})
    source.back.set()
    watch.finish({P0: 20}, at_end=False)
    watch.close()
    assert source.committed == {P0: 10}


class Deleted(MemorySource):
    """A source whose topic the brokers know, or do not know."""

    known = True

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """Raise while the topic is not known."""
        if not self.known:
            raise MissingTopicError("Topic mail no longer exists.")
        return super().end_offsets()


def test_a_topic_that_was_deleted_ends_the_engine_once_that_is_certain() -> None:
    """A client's poll would wait for ever; a broker that has just started may not know a topic yet."""
    it = rig(stream(20))
    source = Deleted(it.log)
    source.open({}, "earliest")
    watch = lag.Lag(source, it.clock, it.metrics)

    def looks(n: int) -> None:
        for _ in range(n):
            watch.tend(lambda: {P0: 20})
            wait_for(watch)
            it.clock.advance(lag.LOOK_INTERVAL_S)

    source.known = False
    looks(6)
    source.known = True
    looks(1)
    source.known = False
    looks(7)
    with pytest.raises(MissingTopicError, match="no longer exists") as caught:
        looks(1)
    assert caught.value.exit_code == 69
    watch.close()


class HeldBack(MemorySource):
    """A source behind whose end an open transaction holds records back."""

    held = 10

    def written_offsets(self) -> Mapping[Partition, int] | None:
        """Return the end with the records of that transaction."""
        return {one: end + self.held for one, end in (self.end_offsets() or {}).items()}


def test_F18_records_behind_an_open_transaction_are_shown_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are no lag of the engine, whose stream may be idle; a transaction in progress is no matter."""
    it = rig(stream(20))
    source = HeldBack(it.log)
    source.open({}, "earliest")
    watch = lag.Lag(source, it.clock, it.metrics)
    labels = {"topic": "memory", "partition": "0"}
    expected = (
        "10 records of memory-0 from offset 20 on are not read: the transaction at that offset is still "
        "open; `kafka-transactions.sh find-hanging` names its producer"
    )
    for looks in range(4):
        watch.tend(lambda: {P0: 20})
        wait_for(watch)
        assert it.metrics.registry.get_sample_value("streamnb_lag_records", labels) == 0
        assert it.metrics.registry.get_sample_value("streamnb_lag_written_records", labels) == 10
        assert caplog.messages.count(expected) == min(looks, 1)
        it.clock.advance(lag.LOOK_INTERVAL_S)
    it.log.append(b"{}")
    watch.tend(lambda: {P0: 20})
    wait_for(watch)
    assert len(caplog.messages) == 1
    watch.close()


def wait_for(watch: lag.Lag) -> None:
    """Wait until nothing is asked any more."""
    with watch._turn:
        assert watch._turn.wait_for(lambda: watch._work is None and not watch._busy, 30)


def test_F18_a_run_until_the_end_names_what_it_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    """It has only one look, at its end."""
    it = rig(stream(20))
    with caplog.at_level(logging.WARNING):
        it.run(source=HeldBack(it.log))
    assert [line for line in caplog.messages if "10 records of memory-0 from offset 20 on" in line]


def test_what_cannot_be_asked_is_logged_and_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """Neither an error of the brokers nor a defect ends the thread."""
    it = rig(stream(20))
    source = MemorySource(it.log)
    source.open({}, "earliest")
    errors: list[Exception] = [TransportError("No broker answered."), ValueError("a defect")]
    ends = source.end_offsets

    def failing() -> Mapping[Partition, int] | None:
        if errors:
            raise errors.pop(0)
        return ends()

    source.end_offsets = failing  # type: ignore[method-assign]
    watch = lag.Lag(source, it.clock, it.metrics)
    for _ in range(3):
        watch.finish({P0: 5}, at_end=False)
    watch.close()
    assert caplog.messages == ["the lag is not known: No broker answered.", "the lag is not known"]
    assert (
        it.metrics.registry.get_sample_value("streamnb_lag_records", {"topic": "memory", "partition": "0"})
        == 15
    )


def test_a_partition_that_was_read_to_its_end_is_not_held_back(caplog: pytest.LogCaptureFixture) -> None:
    """No transaction is blamed, neither while it waits nor at the end of the run."""
    it = rig(stream(30))
    it.run()
    assert "are not read" not in caplog.text


def test_a_lag_that_stays_unknown_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The topic may have been deleted: a line for each look would be 8,640 a day. Each new time is logged."""
    it = rig(stream(20))
    source = MemorySource(it.log)
    source.open({}, "earliest")
    ends, is_away = source.end_offsets, True

    def failing() -> Mapping[Partition, int] | None:
        if is_away:
            raise TransportError("The topic does not exist.")
        return ends()

    source.end_offsets = failing  # type: ignore[method-assign]
    watch = lag.Lag(source, it.clock, it.metrics)
    for look in range(16):
        is_away = look != 14
        watch.tend(lambda: {P0: 5})
        wait_for(watch)
        it.clock.advance(lag.LOOK_INTERVAL_S)
    watch.close()

    first = "the lag is not known: The topic does not exist."
    still = "the lag is still not known, after {} requests: The topic does not exist."
    assert caplog.messages == [first, still.format(7), still.format(13), first]
