"""The engine scores each message before it learns it, learns each label once and accounts for each record."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch
from streamnb.base.offsets import Account
from streamnb.base.protocols import SnapshotStore, Source
from streamnb.base.record import Headers, Partition, RecordBatch, Unreadable
from streamnb.base.snapshot import Snapshot
from streamnb.config.engines import assemble
from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.engine import Engine
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.settings import EngineSettings, Pace, SnapshotSettings, Summary
from streamnb.engine.snapshot_writer import SnapshotWriter
from streamnb.errors import (
    DataError,
    DeliveryError,
    PositionError,
    SettingsError,
    SnapshotError,
    StorageError,
)
from streamnb.evaluation import LiveEvaluation
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.priors import UniformPrior
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.features.readers import Number, WordPairs, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import TEXT_ONLY, View
from streamnb.storage import snapshot_file
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.memory import (
    CRASH,
    END,
    Crash,
    Mark,
    MemoryClock,
    MemoryLog,
    MemoryRecord,
    MemorySink,
    MemorySource,
)
from streamnb.wire.abstention import Abstain
from streamnb.wire.message import Decoder, MessageFields
from streamnb.wire.score import Output

P0 = Partition("memory", 0)
VOCABULARY = ["win", "money", "now", "lunch", "at", "noon", "prize", "free", "meeting", "neurips"]
POISON: tuple[bytes | None, ...] = (
    b"{",
    b"\xff\xfe",
    b'{"text": 7}',
    b'{"text": "a", "label": ""}',
    b"[" * 5000,
    b'{"text": "\\ud800"}',
    b'{"id": 9007199254740993, "text": "a"}',
    b"null",
    None,
)


def message(number: int, text: str, label: str | None) -> bytes:
    """Return one message as JSON."""
    fields = {"id": f"m-{number}", "text": text, "label": label}
    return orjson.dumps({name: value for name, value in fields.items() if value is not None})


def stream(n: int, seed: int = 1) -> list[bytes | None]:
    """Return a stream of messages: some have no label, and every eleventh record cannot be used."""
    draw = random.Random(seed)
    values: list[bytes | None] = []
    for i in range(n):
        if i % 11 == 10:
            values.append(POISON[i // 11 % len(POISON)])
            continue
        text = " ".join(draw.choices(VOCABULARY, k=draw.randrange(6)))
        values.append(message(i, text, draw.choice(["spam", "ham", "ham", "list", None])))
    return values


def filled(values: Sequence[bytes | Mark | None], partitions: int = 1) -> MemoryLog:
    """Return a log of these values, which go to its partitions in turn."""
    log = MemoryLog(partitions)
    for i, value in enumerate(values):
        log.append(value, i % partitions, key=b"k%d" % i, timestamp_ms=1000 * i)
    return log


class MemoryStore:
    """Keeps snapshots in memory, as the bytes of their files; refuses the writes with the given numbers."""

    def __init__(self, refused: Sequence[int] = ()) -> None:
        self.files: list[bytes] = []
        self.asked = 0
        self._refused = set(refused)

    def newest(self) -> Snapshot | None:
        """Return the last snapshot written."""
        return snapshot_file.decode(self.files[-1]) if self.files else None

    def write(self, snapshot: Snapshot) -> int:
        """Keep a snapshot, or refuse it as a full disk does."""
        self.asked += 1
        if self.asked in self._refused:
            raise StorageError("Cannot write snapshot: No space left on device.")
        self.files.append(b"".join(snapshot_file.encode(snapshot.numbered(len(self.files) + 1))))
        return len(self.files)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class HeldStore(MemoryStore):
    """A store that waits for permission to write, and calls `note` before it waits.

    Attributes
    ----------
    let : Semaphore
        Each release permits one write.
    notes : list
        What `note` returned as each write began.
    at_once_max : int
        The largest number of writes at one time.
    """

    def __init__(self, note: Callable[[], object] = lambda: None, refused: Sequence[int] = ()) -> None:
        super().__init__(refused)
        self.let = threading.Semaphore(0)
        self.notes: list[object] = []
        self.at_once_max = 0
        self._at_once = 0
        self._note = note

    def write(self, snapshot: Snapshot) -> int:
        """Call `note`, wait for permission, then write."""
        self._at_once += 1
        self.at_once_max = max(self.at_once_max, self._at_once)
        self.notes.append(self._note())
        assert self.let.acquire(timeout=30)
        self._at_once -= 1
        return super().write(snapshot)


class HookedSink(MemorySink):
    """A sink that calls a function after each batch."""

    def __init__(self, log: MemoryLog, hook: Callable[[], None]) -> None:
        super().__init__(log)
        self._hook = hook

    def publish(
        self,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Publish, then call the function."""
        super().publish(partition, values, keys, headers)
        self._hook()


class HolesSource(MemorySource):
    """A source without the records ``gap``, as if compacted; it reports ``torn`` ones as unreadable."""

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Return batches without those records."""
        return [self._without_holes(batch) for batch in super().poll(records_max, timeout_ms)]

    def _without_holes(self, batch: RecordBatch) -> RecordBatch:
        kept = [i for i, value in enumerate(batch.values) if value not in {b"gap", b"torn"}]
        torn = [offset for offset, value in zip(batch.offsets, batch.values, strict=True) if value == b"torn"]
        return RecordBatch(
            batch.partition,
            [batch.offsets[i] for i in kept],
            [batch.values[i] for i in kept],
            [batch.keys[i] for i in kept],
            [batch.timestamps_ms[i] for i in kept],
            [batch.headers[i] for i in kept],
            batch.next_offset,
            [Unreadable(offset, offset + 1, "checksum") for offset in torn],
        )


class Settled:
    """A source polled only when no snapshot is being written, so that a test always runs the same way."""

    def __init__(self, source: Source, writer: SnapshotWriter) -> None:
        self._source = source
        self._writer = writer

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Wait for the snapshot writer, then poll."""
        self._writer.wait()
        return self._source.poll(records_max, timeout_ms)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a source does
        return getattr(self._source, name)


class Rig:
    """Logs and snapshots, which outlive a process, and the engines that run over them one after the other."""

    def __init__(self, log: MemoryLog, store: Callable[[], SnapshotStore]) -> None:
        self.log = log
        self.store = store
        self.scores = MemoryLog(len(log.end), "scores")
        self.aside = MemoryLog(len(log.end), "aside")
        self.clock = MemoryClock(wall_ms=1_000)
        self.metrics = Metrics()
        self.model = NaiveBayes(TEXT_ONLY)
        self.summary = Summary()

    def engine(self, *, settled: bool = True, **parts: Any) -> Engine:  # noqa: ANN401 - parts of an engine
        """Return an engine with a new model and the given parts; its source is `Settled` by default."""
        self.metrics = Metrics()
        self.model = parts.pop("classifier", None) or NaiveBayes(TEXT_ONLY)
        decoder = parts.pop("decoder", None) or Decoder(MessageFields())
        evaluation = parts.pop("evaluation", None) or LiveEvaluation()
        whole: dict[str, Any] = {
            "model": Model("test", self.model, decoder, parts.pop("guard", None)),
            "source": MemorySource(self.log),
            "sink": MemorySink(self.scores),
            "dead_letters": DeadLetters(MemorySink(self.aside), self.clock, DeadLetterLimits(ratio_max=1.0)),
            "settings": EngineSettings(start="earliest", batch_records_max=7),
            "snapshots": SnapshotSettings(),
            "pace": Pace(snapshot_interval_records=8),
            "output": Output(),
            "clock": self.clock,
            "metrics": self.metrics,
            "evaluation": evaluation,
            "until_end": True,
        }
        whole |= parts
        if "store" not in whole:
            whole["store"] = self.store()
        engine = assemble(**whole)
        if settled:
            engine.source = cast("Source", Settled(engine.source, engine.snapshots.writer))
        return engine

    def run(self, begin_from: Snapshot | None = None, **parts: Any) -> Summary:  # noqa: ANN401
        """Run one engine from recovery to the end of the log, or to a crash."""
        engine = self.engine(**parts)
        self.summary = engine.summary
        try:
            return engine.run(begin_from)
        finally:
            engine.close()

    def run_through(self, **parts: Any) -> Summary:  # noqa: ANN401
        """Run engines until one reaches the end of the log."""
        while True:
            try:
                return self.run(**parts)
            except Crash:
                continue

    def published(self, partition: int = 0) -> list[dict[str, Any]]:
        """Return the scores of one partition, decoded."""
        return [orjson.loads(record.value or b"") for record in self.scores.records(partition)]


def rig(values: Sequence[bytes | Mark | None], partitions: int = 1) -> Rig:
    """Return a rig whose snapshots are in memory."""
    store = MemoryStore()
    return Rig(filled(values, partitions), lambda: store)


def plain_loop(log: MemoryLog, model: NaiveBayes | None = None) -> NaiveBayes:
    """Return a model that learned the log in a plain loop."""
    model = model or NaiveBayes(TEXT_ONLY)
    for element in log.elements:
        if isinstance(element, MemoryRecord):
            model.step(decoded(element), score=False)
    return model


def decoded(record: MemoryRecord) -> Batch:
    """Return one record as a batch, which is empty if the record cannot be used."""
    partition = Partition("memory", record.partition)
    batch = RecordBatch(partition, [record.offset], [record.value], [None], [-1], [()], record.offset + 1)
    return Decoder(MessageFields()).decode(batch).batch


def addresses(log: MemoryLog) -> dict[tuple[int, int], set[bytes]]:
    """Return the distinct scores of each source address."""
    found: dict[tuple[int, int], set[bytes]] = {}
    for number in range(len(log.end)):
        for record in log.records(number):
            source = orjson.loads(record.value or b"")["source"]
            found.setdefault((source["partition"], source["offset"]), set()).add(record.value or b"")
    return found


def put_aside(log: MemoryLog) -> set[tuple[int, int]]:
    """Return the source addresses of the dead letters."""
    found = set()
    for number in range(len(log.end)):
        for record in log.records(number):
            headers = dict(record.headers)
            found.add((int(headers["streamnb.partition"]), int(headers["streamnb.offset"])))
    return found


def assert_everything_is_accounted_for(rig: Rig, summary: Summary) -> None:
    """Check the accounting identity, and that each record has either a score or a dead letter."""
    for partition, account in summary.accounts.items():
        assert account.balance() == 0
        assert account.start == 0
        assert account.next_offset == rig.log.end[partition.number]
    every = {(n, offset) for n, end in enumerate(rig.log.end) for offset in range(end)}
    scored, aside = set(addresses(rig.scores)), put_aside(rig.aside)
    assert scored | aside == every
    assert not scored & aside


# ---- where it begins


def test_a_first_start_must_say_where_it_begins() -> None:
    """There is no default, because neither end of the log would be safe."""
    with pytest.raises(SettingsError, match=r"`engine.start` is not set"):
        rig(stream(5)).run(settings=EngineSettings())


def test_earliest_begins_at_the_first_record() -> None:
    """All records of the log are scored or become dead letters."""
    it = rig(stream(30))
    summary = it.run()
    assert summary.accounts[P0].start == 0
    assert_everything_is_accounted_for(it, summary)


def test_latest_begins_after_the_last_record_for_good() -> None:
    """A snapshot keeps this offset, so a restart does not skip the records written in between."""
    it = rig(stream(10))
    late = EngineSettings(start="latest")
    assert it.run(settings=late).records == 0
    for i in range(4):
        it.log.append(message(i, "lunch", "ham"))
    summary = it.run(settings=late)
    assert (summary.scored, summary.accounts[P0].start) == (4, 10)


def test_a_time_begins_at_the_first_record_from_then_on() -> None:
    """The time is given in milliseconds since 1970."""
    it = rig([message(i, "lunch", "ham") for i in range(10)])
    assert it.run(settings=EngineSettings(start=7_500)).accounts[P0] == Account(8, 10, scored=2)


# ---- scores


def test_every_message_is_scored_once_and_in_order() -> None:
    """Each score keeps its message's partition and key, across batches."""
    it = rig(stream(90), partitions=3)
    summary = it.run()
    for number in range(3):
        offsets = [score["source"]["offset"] for score in it.published(number)]
        assert offsets == sorted(set(offsets))
        assert {score["source"]["partition"] for score in it.published(number)} == {number}
        keys = [record.key for record in it.scores.records(number)]
        assert keys == [b"k%d" % (offset * 3 + number) for offset in offsets]
    assert summary.scored == sum(it.scores.end)
    assert_everything_is_accounted_for(it, summary)


def test_a_score_never_knows_its_own_label() -> None:
    """Each score equals, to the bit, that of a loop which predicts before it learns."""
    it = rig(stream(60))
    it.run()
    model = NaiveBayes(TEXT_ONLY)
    scores = iter(it.published())
    for record in it.log.records(0):
        batch = decoded(record)
        if not len(batch):
            continue
        score = next(scores)
        text = batch.fields["text"][0]
        assert score["posterior"] == model.predict_proba_one({"text": text})
        assert score["learned"] == model.learned_
        model.learn_one({"text": text}, batch.labels[0])
    assert next(scores, None) is None
    assert it.model.digest() == model.digest()


def test_unlabelled_emits_only_what_came_without_a_label() -> None:
    """Labelled messages are learned and counted as `learned_only`."""
    it = rig([message(i, "lunch", "ham" if i % 3 else None) for i in range(9)])
    summary = it.run(output=Output(emit="unlabelled"))
    assert [score["id"] for score in it.published()] == ["m-0", "m-3", "m-6"]
    assert summary.accounts[P0] == Account(0, 9, scored=3, learned_only=6)
    assert summary.learned == 6
    assert summary.digest == plain_loop(it.log).digest()


def test_a_score_that_rests_on_too_little_names_no_class_and_is_counted() -> None:
    """There is no prediction until each class has learned two messages; learning is not affected."""
    labels = ["ham", "spam", None, "ham", "spam", None, None]
    it = rig([message(i, "lunch", label) for i, label in enumerate(labels)])
    metrics = Metrics()
    summary = it.run(output=Output(abstain=Abstain(learned_min=2)), metrics=metrics)
    scores = it.published()
    assert [score.get("abstained") for score in scores] == ["too_few_learned"] * 5 + [None] * 2
    assert [score["prediction"] is None for score in scores] == [True] * 5 + [False] * 2
    assert scores[-1]["learned_by_class"] == {"ham": 2, "spam": 2}
    counted = metrics.registry.get_sample_value("streamnb_abstained_total", {"reason": "too_few_learned"})
    assert counted == 5
    assert summary.digest == plain_loop(it.log).digest()


def test_the_state_in_a_score_is_enough_to_compute_it_again() -> None:
    """A model that learns the records before these offsets gives the same posterior, to the bit."""
    it = rig(stream(60), partitions=2)
    it.run(output=Output(state=True), settings=EngineSettings(start="earliest", batch_records_max=1))
    for number in range(2):
        for score in it.published(number):
            model = NaiveBayes(TEXT_ONLY)
            state = score["state"]
            for element in it.log.elements:
                assert isinstance(element, MemoryRecord)
                if element.offset < state[f"memory-{element.partition}"]:
                    model.step(decoded(element), score=False)
            assert state[f"memory-{number}"] == score["source"]["offset"]
            record = it.log.records(number)[score["source"]["offset"]]
            assert score["posterior"] == model.predict_proba_one({"text": decoded(record).fields["text"][0]})


def test_F2_a_label_past_the_limit_becomes_a_dead_letter() -> None:
    """Its message is neither learned nor scored, and the existing classes are not affected."""
    labels = ["ham", "spam", "third", "ham", None, "fourth"]
    it = rig([message(i, "lunch", label) for i, label in enumerate(labels)])
    summary = it.run(classifier=NaiveBayes(TEXT_ONLY, classes_max=2))
    assert [score["id"] for score in it.published()] == ["m-0", "m-1", "m-3", "m-4"]
    reasons = [dict(record.headers)["streamnb.reason"] for record in it.aside.records(0)]
    assert reasons == [b"class_limit"] * 2
    assert it.aside.records(0)[0].value == it.log.records(0)[2].value
    assert summary.accounts[P0] == Account(0, 6, scored=4, dead_lettered=2)
    assert summary.learned == 3


# ---- exactly once


def test_a_crash_at_any_record_changes_nothing(tmp_path: Path) -> None:
    """The digest is equal, each message is scored at least once, and a repeated score has equal bytes."""
    values = stream(60)
    whole = rig(values)
    digest = whole.run().digest
    alone = addresses(whole.scores)
    for position in range(61):
        log = filled([*values[:position], CRASH, *values[position:]])
        directory = tmp_path / str(position)
        it = Rig(log, lambda directory=directory: SnapshotDirectory(directory))  # type: ignore[misc]
        summary = it.run_through()
        assert summary.digest == digest, position
        assert_everything_is_accounted_for(it, summary)
        assert addresses(it.scores) == alone, position
        crashed = [True for element in log.spent if log.elements[element] is CRASH]
        assert len(crashed) == (position < 60), position


def test_a_crash_with_three_partitions_leaves_the_order_free_state_equal() -> None:
    """Counts, totals and lengths do not depend on how partitions interleave."""
    values = stream(90)
    digest = plain_loop(filled(values, 3)).digest()["order_free"]
    for position in range(0, 90, 7):
        it = rig([], 3)
        for i, value in enumerate(values):
            if i == position:
                it.log.append(CRASH)
            it.log.append(value, i % 3)
        summary = it.run_through()
        assert summary.digest["order_free"] == digest
        assert_everything_is_accounted_for(it, summary)


ELEMENTS = st.one_of(
    st.tuples(
        st.lists(st.sampled_from(VOCABULARY), max_size=4), st.sampled_from(["spam", "ham", "x", None])
    ).map(lambda drawn: message(0, " ".join(drawn[0]), drawn[1])),
    st.sampled_from(POISON),
    st.just(CRASH),
)


@settings(max_examples=150, deadline=None)
@given(
    elements=st.lists(st.tuples(ELEMENTS, st.integers(0, 2)), max_size=40),
    partitions=st.sampled_from([1, 1, 3]),
    batch=st.integers(1, 9),
    interval=st.integers(1, 12),
    losses=st.lists(st.integers(0, 20), max_size=4),
    refused=st.lists(st.integers(1, 12), max_size=4),
)
def test_no_schedule_of_accidents_changes_what_is_learned(
    elements: list[tuple[bytes | Mark | None, int]],
    partitions: int,
    batch: int,
    interval: int,
    losses: list[int],
    refused: list[int],
) -> None:
    """Accidents are crashes, unusable records, lost deliveries and full disks, at any batch size."""
    log = MemoryLog(partitions)
    for value, number in elements:
        log.append(value, number % partitions)
    store = MemoryStore(refused)
    it = Rig(log, lambda: store)
    left = list(losses)
    while True:
        sink = MemorySink(it.scores, left.pop() if left else None)
        try:
            summary = it.run(
                sink=sink,
                settings=EngineSettings(start="earliest", batch_records_max=batch),
                pace=Pace(snapshot_interval_records=interval, snapshot_failures_max=2),
            )
            break
        except DataError:  # the end was reached, and all that this run read was refused
            summary = it.summary
            break
        except (Crash, DeliveryError, StorageError):
            for kept in store.files:
                assert all(account.balance() == 0 for account in snapshot_file.decode(kept).accounts.values())
    expected = plain_loop(log).digest()
    assert summary.digest["order_free"] == expected["order_free"]
    if partitions == 1:
        assert summary.digest == expected
        assert all(len(values) == 1 for values in addresses(it.scores).values())
    assert_everything_is_accounted_for(it, summary)
    for partition, account in summary.accounts.items():
        own = [record.value for record in log.records(partition.number)]
        assert account.tombstones == own.count(None)
        assert account.dead_lettered == sum(value in POISON for value in own) - own.count(None)


# ---- snapshots


def test_a_snapshot_waits_for_every_delivery() -> None:
    """If the sink lost a record, the old snapshot stays in force."""
    it = rig(stream(40))
    with pytest.raises(DeliveryError):
        it.run(sink=MemorySink(it.scores, fail_after=17))
    newest = it.store().newest()
    assert newest is not None
    assert 0 < newest.accounts[P0].scored <= 17
    assert it.run().digest == plain_loop(it.log).digest()


def test_a_lost_dead_letter_bars_a_snapshot_as_well() -> None:
    """A record is done only when its score or its dead letter was acknowledged."""
    it = rig([message(0, "a", "x"), b"{", message(1, "a", "x")])
    lossy = DeadLetters(MemorySink(it.aside, fail_after=0), it.clock, DeadLetterLimits(ratio_max=1.0))
    with pytest.raises(DeliveryError):
        it.run(dead_letters=lossy)
    assert it.store().newest() is None


def test_a_refused_snapshot_is_taken_again_later() -> None:
    """The stream goes on until three in a row failed; a successful write resets the count."""
    store = MemoryStore(refused=[1, 2, 4, 5])
    it = Rig(filled(stream(200)), lambda: store)
    summary = it.run(pace=Pace(snapshot_interval_records=8, snapshot_failures_max=3))
    assert summary.digest == plain_loop(it.log).digest()
    kept = it.metrics.registry.get_sample_value("streamnb_snapshots_total", {"outcome": "kept"})
    failed = it.metrics.registry.get_sample_value("streamnb_snapshots_total", {"outcome": "failed"})
    assert (kept, failed) == (summary.snapshots, 4)


def test_too_many_refused_snapshots_stop_the_engine() -> None:
    """The engine does not learn forever without a snapshot; each attempt waits a whole interval."""
    store = MemoryStore(refused=range(1, 9))
    it = Rig(filled(stream(400)), lambda: store)
    with pytest.raises(StorageError, match="No space left"):
        it.run(
            settings=EngineSettings(start="earliest", batch_records_max=1),
            pace=Pace(snapshot_interval_records=8, snapshot_failures_max=3),
        )
    assert store.asked == 3
    # The engine learns of a failure one record later, and the next interval begins then.
    assert sum(it.scores.end) + sum(it.aside.end) == 3 * 9


ONE_BY_ONE = EngineSettings(start="earliest", batch_records_max=1)


def test_the_stream_goes_on_while_a_snapshot_is_written() -> None:
    """Snapshots are written one at a time; each holds the state of the moment when it was begun."""
    values = [message(i, f"lunch {i} win", "ham" if i % 3 else "spam") for i in range(40)]
    it = rig(values)
    source = MemorySource(it.log)

    def progress() -> None:
        """Hold the first write until 30 scores were published; then permit every write."""
        if sum(it.scores.end) == 30:
            store.let.release()
            engine.snapshots.writer.wait()
            assert len(store.files) == 1
            store.let.release(9)

    sink = HookedSink(it.scores, progress)
    store = HeldStore(lambda: (sink.flushed, dict(source.committed)))
    engine = it.engine(
        settled=False,
        source=source,
        sink=sink,
        store=store,
        settings=ONE_BY_ONE,
        pace=Pace(snapshot_interval_records=8),
    )
    summary = engine.run()
    engine.close()
    kept = [snapshot_file.decode(data) for data in store.files]
    ends = [snapshot.accounts[P0].next_offset for snapshot in kept]
    assert ends[:2] == [8, 30]
    assert ends[-1] == 40
    assert store.at_once_max == 1
    assert summary.snapshots == len(kept)
    # When a write began, all earlier scores were acknowledged; its offsets were committed only afterwards.
    for note, end, before in zip(store.notes, ends, [0, *ends], strict=False):
        flushed, committed = cast("tuple[int, dict[Partition, int]]", note)
        assert flushed == end
        assert committed.get(P0, 0) in [0, *ends]
        assert committed.get(P0, 0) <= before
    for end, snapshot in zip(ends, kept, strict=True):
        alone = rig(values[:end])
        alone.run()
        expected = alone.store().newest()
        assert expected is not None
        for part in ("values", "digest", "accounts", "lineage", "statistics", "reading", "source"):
            assert getattr(snapshot, part) == getattr(expected, part), part
        model = NaiveBayes(TEXT_ONLY)
        model.restore(snapshot.values, snapshot.sections)
        assert model.digest() == snapshot.digest == plain_loop(alone.log).digest()


@pytest.mark.parametrize("survives", [True, False])
def test_a_crash_while_a_snapshot_is_written_changes_nothing(survives: bool) -> None:
    """Whether or not the write succeeds, the newest snapshot is intact and later records are read again."""
    values = stream(60)
    store = HeldStore(refused=[] if survives else [1])
    it = Rig(filled([*values[:20], CRASH, *values[20:]]), lambda: store)
    parts: dict[str, Any] = {"settings": ONE_BY_ONE, "pace": Pace(snapshot_interval_records=8)}
    engine = it.engine(settled=False, **parts)
    with pytest.raises(Crash):
        engine.run()
    store.let.release(99)
    engine.close()
    newest = store.newest()
    assert (newest is not None) == survives
    assert newest is None or newest.accounts[P0].next_offset == 8
    summary = it.run(**parts)
    assert summary.records == 60 - 8 * survives
    assert summary.digest == plain_loop(it.log).digest()
    assert_everything_is_accounted_for(it, summary)
    assert all(len(scores) == 1 for scores in addresses(it.scores).values())


@pytest.mark.parametrize("refused", [[], [1]])
def test_a_stop_waits_for_the_snapshot_in_flight_and_takes_a_last_one(refused: list[int]) -> None:
    """Whether that snapshot is written or refused, the last one holds everything."""
    store = HeldStore(refused=refused)
    it = Rig(filled([message(i, "lunch", "ham") for i in range(15)]), lambda: store)
    engine = it.engine(settled=False, settings=ONE_BY_ONE, pace=Pace(snapshot_interval_records=8))
    engine.delivery.sink = HookedSink(it.scores, lambda: engine.stop() if sum(it.scores.end) == 12 else None)
    threading.Timer(0.05, store.let.release, [2]).start()
    summary = engine.run()
    engine.close()
    newest = store.newest()
    assert newest is not None
    assert newest.digest == summary.digest
    assert newest.accounts[P0].next_offset == summary.records == 12
    assert summary.snapshots == len(store.files) == 2 - len(refused)
    assert it.metrics.registry.get_sample_value("streamnb_snapshots_total", {"outcome": "failed"}) == (
        len(refused) or None
    )


def test_a_mistake_in_the_writers_thread_stops_the_engine() -> None:
    """Unlike a full disk, a defect is never tolerated."""

    class Mistaken(MemoryStore):
        def write(self, snapshot: Snapshot) -> int:
            raise ZeroDivisionError(str(snapshot.sequence))

    it = Rig(filled(stream(40)), Mistaken)
    with pytest.raises(ZeroDivisionError):
        it.run()
    assert 0 < sum(it.scores.end) < 40


def test_a_snapshot_is_due_when_its_time_has_come() -> None:
    """With ten seconds per batch and an interval of thirty, there is one every third batch."""
    it = rig([message(i, "lunch", "ham") for i in range(12)])
    kept: list[int] = []

    def ten_seconds() -> None:
        it.clock.advance(10.0)
        newest = it.store().newest()
        kept.append(newest.accounts[P0].next_offset if newest else 0)

    summary = it.run(
        sink=HookedSink(it.scores, ten_seconds),
        settings=EngineSettings(start="earliest", batch_records_max=1),
        snapshots=SnapshotSettings(interval_s=30.0),
        pace=Pace(snapshot_interval_records=1_000_000),
    )
    assert kept == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]
    assert summary.seconds == 120.0


def test_nothing_read_is_no_reason_for_a_snapshot() -> None:
    """A restart at the end of the log writes no file."""
    it = rig(stream(10))
    it.run()
    assert it.run().snapshots == 0


def test_the_offsets_of_a_snapshot_are_committed_after_it() -> None:
    """Lag tools then see the offsets of a restart; the lag is on the metrics page."""
    it = rig(stream(20))
    source = MemorySource(it.log)
    it.run(source=source)
    assert source.committed == {P0: 20}
    labels = {"topic": "memory", "partition": "0"}
    assert it.metrics.registry.get_sample_value("streamnb_next_offset", labels) == 20
    assert it.metrics.registry.get_sample_value("streamnb_lag_records", labels) == 0


def test_stop_finishes_the_batch_in_hand_and_keeps_it() -> None:
    """The snapshot covers all published scores; the next start reads the rest."""
    it = rig([message(i, "lunch", "ham") for i in range(20)])
    engine = it.engine()
    engine.delivery.sink = HookedSink(it.scores, engine.stop)
    summary = engine.run()
    newest = it.store().newest()
    assert newest is not None
    assert (summary.records, newest.accounts[P0].next_offset, sum(it.scores.end)) == (7, 7, 7)
    assert newest.digest == summary.digest
    assert it.run().digest == plain_loop(it.log).digest()


def test_closing_lets_the_next_engine_have_the_directory(tmp_path: Path) -> None:
    """Before that it is refused, because two learners would overwrite each other."""
    it = Rig(filled(stream(10)), lambda: SnapshotDirectory(tmp_path / "s"))
    engine = it.engine()
    with pytest.raises(StorageError, match="in use by another learner"):
        it.engine()
    engine.close()
    engine.close()
    it.run()


# ---- what it refuses to resume from


def test_begin_from_keeps_what_was_learned_and_drops_the_offsets() -> None:
    """The lineage says where the statistics came from."""
    history = rig(stream(30, seed=2))
    history.run()
    begun = history.store().newest()
    it = rig(stream(30, seed=3))
    summary = it.run(begun, settings=EngineSettings())
    assert summary.accounts[P0].start == 0
    assert summary.records == 30
    assert summary.digest == plain_loop(it.log, plain_loop(history.log)).digest()
    newest = it.store().newest()
    assert newest is not None
    assert begun is not None
    assert newest.lineage == [{"event": "begun from a snapshot", "digest": begun.digest["all"]}]
    with pytest.raises(SettingsError, match="There are snapshots in the directory already"):
        it.run(begun)


def test_begin_from_another_reading_is_noted() -> None:
    """A changed reading is noted at a first start as at any other."""
    history = rig(stream(30))
    history.run(classifier=NaiveBayes(TEXT_ONLY, head="product"))
    begun = history.store().newest()
    it = rig(stream(5))
    it.run(begun, classifier=NaiveBayes(TEXT_ONLY, head="product", prior=UniformPrior()))
    newest = it.store().newest()
    assert newest is not None
    assert [entry["event"] for entry in newest.lineage] == ["begun from a snapshot", "reading changed"]


def test_another_topic_of_the_same_name_is_refused() -> None:
    """Its offsets belong to other records."""
    it = rig(stream(10))
    it.run()
    it.log = MemoryLog(topic_id="memory-2")
    for value in stream(20):
        it.log.append(value)
    with pytest.raises(
        PositionError, match=r"its id is now memory-2, but it was memory-1 when snapshot 1 was made"
    ):
        it.run()


def test_records_deleted_before_they_were_learned_stop_the_engine() -> None:
    """Only people may decide to leave a gap in what is learned."""
    it = rig(stream(10))
    it.run()
    for value in stream(10):
        it.log.append(value)
    it.log.delete_before(0, 12)
    with pytest.raises(PositionError, match=r"offsets 10 to 11 .* are missing"):
        it.run()
    newest = it.store().newest()
    assert newest is not None
    assert newest.accounts[P0].next_offset == 10


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"classifier": NaiveBayes(TEXT_ONLY, tokenizer=Tokenizer(rule="words"))}, r"model\.tokenizer\.rule"),
        ({"classifier": NaiveBayes([View("words", Words()), View("pairs", WordPairs())])}, r"model\.views"),
        ({"classifier": NaiveBayes(TEXT_ONLY, head="product")}, r"model\.head"),
        ({"decoder": Decoder(MessageFields(label="y"))}, r"message\.fields\.label"),
        ({"decoder": Decoder(MessageFields(label_values={"spam": "junk"}))}, r"message\.labels\.spam"),
    ],
)
def test_statistics_of_other_settings_are_refused(changed: dict[str, Any], path: str) -> None:
    """The error names the setting that differs; the counts would have another meaning."""
    it = rig(stream(10))
    it.run()
    with pytest.raises(SnapshotError, match=rf"made with other settings: {path}"):
        it.run(**changed)


def test_another_reading_is_allowed_and_noted() -> None:
    """The lineage gets one event per change; a start without a change leaves it alone."""
    it = rig(stream(10))
    it.run()
    smoother = View("words", Words(), Multinomial(Laplace(0.5)))
    for _ in range(3):
        it.run(classifier=NaiveBayes([smoother]))
        it.log.append(message(0, "lunch", "ham"))
    newest = it.store().newest()
    assert newest is not None
    assert newest.lineage == [
        {
            "event": "reading changed",
            "after": 1,
            "changes": ["event_models.words.smoothing.alpha: 0.1 -> 0.5"],
        }
    ]


def test_a_stream_that_is_mostly_refused_stops_the_engine() -> None:
    """No snapshot is taken."""
    it = rig([b"{"] * 20)
    limits = DeadLetterLimits(ratio_max=0.5)
    with pytest.raises(DataError, match="14 of the last 14 records became dead letters"):
        it.run(
            dead_letters=DeadLetters(MemorySink(it.aside), it.clock, limits, ratio_window_records=10),
            pace=Pace(snapshot_interval_records=1000),
        )
    assert it.store().newest() is None


AMOUNTS = st.one_of(
    st.none(), st.sampled_from([0.1, 0.7, 1e-160, 1e-320, 1e100, -1e100]), st.floats(-1e100, 1e100)
)


@settings(max_examples=150, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(
            st.lists(st.sampled_from(VOCABULARY), max_size=3),
            AMOUNTS,
            st.sampled_from(["spam", "ham", "x"]),
            st.one_of(st.sampled_from([1, 3, 0.1, 1e9, 1e-9]), st.floats(1e-9, 1e9)),
        ),
        max_size=8,
    )
)
@example([([], 0.1, "ham", 0.1)])
def test_whatever_was_learned_can_be_gone_on_from(
    drawn: list[tuple[list[str], float | None, str, float]],
) -> None:
    """A snapshot can be restored, whatever weights and numbers its records held."""
    views = [View("words", Words()), View("amount", Number("amount"))]
    parts: dict[str, Any] = {"decoder": Decoder(MessageFields(weight="weight", number=("amount",)))}
    it = rig(
        [
            orjson.dumps({"text": " ".join(words), "amount": amount, "label": label, "weight": weight})
            for words, amount, label, weight in drawn
        ]
    )
    digest = it.run(classifier=NaiveBayes(views), **parts).digest
    assert it.run(classifier=NaiveBayes(views), **parts).digest == digest
    assert it.aside.elements == []


def test_a_model_of_numbers_alone_goes_on_from_its_snapshot() -> None:
    """A model without a text view counts no tokens; its snapshot can be restored too."""
    values: list[bytes | None] = [
        orjson.dumps({"amount": i % 7, "label": "high" if i % 7 > 3 else "low"}) for i in range(40)
    ]
    parts: dict[str, Any] = {"decoder": Decoder(MessageFields(text=(), number=("amount",)))}
    views = [View("amount", Number("amount"))]
    whole = rig(values)
    digest = whole.run(classifier=NaiveBayes(views), **parts).digest
    it = rig([*values[:25], CRASH, *values[25:]])
    with pytest.raises(Crash):
        it.run(classifier=NaiveBayes(views), **parts)
    assert it.run(classifier=NaiveBayes(views), **parts).digest == digest
    assert addresses(it.scores) == addresses(whole.scores)


# ---- ends and holes


def test_until_end_stops_at_the_end_there_was_at_the_start() -> None:
    """It stops even if new records arrive as fast as they are read."""
    it = rig([message(i, "lunch", "ham") for i in range(20)])

    def more() -> None:
        for _ in range(7):
            it.log.append(b"{}")

    summary = it.run(sink=HookedSink(it.scores, more))
    assert 20 <= summary.records < 30


def test_until_end_reads_to_the_finish_where_ends_are_unknown() -> None:
    """An empty poll of a pipe does not end the run."""

    class Pipe(MemorySource):
        polls = 0

        def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
            self.polls += 1
            return super().poll(records_max, timeout_ms) if self.polls % 2 else []

        def end_offsets(self) -> Mapping[Partition, int] | None:
            return None

    it = rig([*stream(20), END])
    source: Source = Pipe(it.log)
    assert it.run(source=source).records == 20


def test_gaps_and_unreadable_offsets_are_accounted_for() -> None:
    """The identity holds in accounts and metrics; each unreadable range leaves an empty dead letter."""
    values = [message(0, "a", "x"), b"gap", b"torn", None, b"gap", message(1, "a", None), b"{", b"torn"]
    it = rig(values)
    summary = it.run(source=HolesSource(it.log), settings=EngineSettings("earliest", batch_records_max=3))
    assert summary.accounts[P0] == Account(
        0, 8, scored=2, dead_lettered=1, tombstones=1, unreadable=2, gaps=2
    )
    outcomes = {
        sample.labels["outcome"]: sample.value
        for metric in it.metrics.records.collect()
        for sample in metric.samples
        if sample.name == "streamnb_records_total"
    }
    assert sum(outcomes.values()) == 8
    assert outcomes["unreadable"] == 2
    stubs = [
        record for record in it.aside.records(0) if dict(record.headers)["streamnb.reason"] == b"unreadable"
    ]
    assert [(dict(stub.headers)["streamnb.offset"], stub.value) for stub in stubs] == [
        (b"2", None),
        (b"7", None),
    ]
