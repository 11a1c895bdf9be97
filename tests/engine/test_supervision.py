"""Restarts inside the process go on while they help, and end when they do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from streamnb.base.record import RecordBatch
from streamnb.engine import EngineSettings, supervision
from streamnb.engine.engine import Engine
from streamnb.engine.supervision import supervise
from streamnb.errors import DeliveryError, PositionLostError, TransactionError, TransportError
from streamnb.transports.memory import MemorySink, MemorySource
from streamnb.transports.memory_transactions import MemoryBroker, MemoryTransactions
from tests.engine.test_engine import P0, Rig, rig, stream
from tests.engine.test_transactions import assert_each_input_is_published_once, transactional

RESTARTS_MAX = 300


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The supervisor's clock, which only a test moves on; between two engines it does not wait."""
    made = SimpleNamespace(now_s=1.0, sleep=lambda _: None)
    made.monotonic = lambda: made.now_s
    monkeypatch.setattr(supervision, "time", made)
    return made


class Refusing(MemorySink):
    """A sink that cannot deliver the scores of some source offsets, each as often as `times` says."""

    def __init__(self, it: Rig, times: dict[int, int]) -> None:
        super().__init__(it.scores)
        self._times = times

    def publish(self, partition: int, values: Any, *columns: Any) -> None:  # noqa: ANN401 - as MemorySink
        """Publish, or fail."""
        for offset, left in self._times.items():
            if left and any(b'"offset":%d}' % offset in value for value in values):
                self._times[offset] -= 1
                raise DeliveryError("A record for scores-0 was not delivered.", "Start again.")
        super().publish(partition, values, *columns)


class Builder:
    """Builds engines over the same logs, each with the same sink, and keeps them; each takes `took_s`."""

    def __init__(self, it: Rig, times: dict[int, int], clock: SimpleNamespace, took_s: float = 1.0) -> None:
        self.built: list[Engine] = []
        self._it, self._times, self._clock, self._took_s = it, times, clock, took_s
        self._broker = MemoryBroker()

    def __call__(self) -> Engine:
        """Return the next engine."""
        assert len(self.built) < RESTARTS_MAX, "it restarts for ever"
        self._clock.now_s += self._took_s
        parts = transactional(self._it, self._broker, MemoryTransactions)
        self.built.append(self._it.engine(**parts, sink=Refusing(self._it, self._times)))
        return self.built[-1]


def test_F14_restarts_that_read_records_but_never_pass_the_failure_end(clock: SimpleNamespace) -> None:
    """Each engine reads and commits what comes before the failing offset; only what lies past it counts."""
    build = Builder(rig(stream(60)), {15: RESTARTS_MAX}, clock)
    with pytest.raises(TransactionError, match=r"Restarts for 120 s did not get past memory-0 @ 21"):
        supervise(build)
    assert 119 < len(build.built) < 130
    assert build.built[-1].summary.records > 0


def test_F14_a_failure_that_passes_gives_the_next_one_a_whole_budget(clock: SimpleNamespace) -> None:
    """The time of a failure ends when its records are committed: two that pass are not one that stays."""
    it = rig(stream(60))
    build = Builder(it, {20: 1, 40: 1}, clock, took_s=supervision.BUDGET_S + 1)
    supervise(build)
    assert len(build.built) == 3
    assert_each_input_is_published_once(it)


def test_a_broker_that_is_away_after_a_failure_is_waited_for_within_the_budget(
    clock: SimpleNamespace,
) -> None:
    """A new engine that finds no broker is tried again; before any failure that is an error at once."""
    it = rig(stream(30))
    build, away = Builder(it, {20: 1}, clock), [1, 1]

    def sometimes() -> Engine:
        if build.built and away:
            away.pop()
            raise TransportError("No broker answered.")
        return build()

    supervise(sometimes)
    assert_each_input_is_published_once(it)

    def never() -> Engine:
        raise TransportError("No broker answered.")

    with pytest.raises(TransportError, match="No broker"):
        supervise(never)


def test_a_stop_ends_restarts_too(clock: SimpleNamespace) -> None:
    """An operator who stops a failing engine does not wait for the budget."""
    build = Builder(rig(stream(30)), {3: RESTARTS_MAX}, clock)

    def stopped_from_then_on() -> Engine:
        engine = build()
        if len(build.built) == 3:
            poll = engine.source.poll

            def last(records_max: int, timeout_ms: int) -> list[RecordBatch]:
                engine.stop()
                return poll(records_max, timeout_ms)

            engine.source.poll = last  # type: ignore[method-assign]
        return engine

    with pytest.raises(TransactionError):
        supervise(stopped_from_then_on)
    assert len(build.built) == 3


class Losing(MemorySource):
    """A source whose log loses records once the position has reached 20."""

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Delete the next records, once, and poll."""
        if self._log.begin[0] == 0 and self._positions[0] >= 20:
            self._log.delete_before(0, self._positions[0] + 3)
        return super().poll(records_max, timeout_ms)


@pytest.mark.parametrize("choice", ["skip", "stop"])
def test_a_loss_that_is_allowed_is_skipped_by_a_running_engine_too(
    choice: Literal["skip", "stop"], caplog: pytest.LogCaptureFixture
) -> None:
    """It was obeyed only by the next start; the records before the loss are neither read nor lost again."""
    it = rig(stream(60))
    built: list[Engine] = []

    def build() -> Engine:
        settings = EngineSettings(start="earliest", batch_records_max=7, on_data_loss=choice)
        built.append(it.engine(source=Losing(it.log), settings=settings))
        return built[-1]

    if choice == "stop":
        with pytest.raises(PositionLostError, match="are lost"):
            supervise(build)
        assert len(built) == 1
        return
    summary = supervise(build)
    newest = it.store().newest()

    assert newest is not None
    assert newest.lineage == [{"event": "data_loss", "partition": "memory-0", "from": 21, "to": 24}]
    assert (summary.accounts[P0].lost, summary.accounts[P0].balance()) == (3, 0)
    assert [engine.summary.records for engine in built] == [21, 36]
    assert any("continuing after the missing records" in line for line in caplog.messages)


def test_a_stop_while_records_are_lost_ends_the_engine_too() -> None:
    """No further engine is built, although the loss is allowed."""
    it = rig(stream(60))
    built: list[Engine] = []

    class Stopped(Losing):
        def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
            if self._positions[0] >= 20:
                built[-1].stop()
            return super().poll(records_max, timeout_ms)

    def build() -> Engine:
        settings = EngineSettings(start="earliest", batch_records_max=7, on_data_loss="skip")
        built.append(it.engine(source=Stopped(it.log), settings=settings))
        return built[-1]

    with pytest.raises(PositionLostError):
        supervise(build)
    assert len(built) == 1


def test_what_a_first_start_begins_from_is_for_the_first_engine_alone(clock: SimpleNamespace) -> None:
    """The second one resumes from the snapshots that the first one has written."""
    taught, it = rig(stream(30, seed=5)), rig(stream(60))
    taught.run()
    begin_from = taught.store().newest()
    assert begin_from is not None
    build = Builder(it, {20: 1}, clock)
    supervise(build, begin_from)

    assert len(build.built) == 2
    assert build.built[-1].processing.model.classifier.learned_ > begin_from.values["learned"]  # type: ignore[attr-defined]
    assert_each_input_is_published_once(it)


def test_an_engine_that_loses_its_position_before_it_read_anything_ends() -> None:
    """Another engine would lose it in the same way, again and again."""
    it = rig(stream(60))
    built: list[Engine] = []

    class Gone(MemorySource):
        def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:  # noqa: ARG002
            raise PositionLostError("The log no longer holds the position.", "Lengthen the retention.")

    def build() -> Engine:
        settings = EngineSettings(start="earliest", on_data_loss="skip")
        built.append(it.engine(source=Gone(it.log), settings=settings))
        return built[-1]

    with pytest.raises(PositionLostError):
        supervise(build)
    assert len(built) == 1
