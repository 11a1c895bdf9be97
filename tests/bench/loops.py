"""What `throughput.py` measures over memory and files: the engine, the model's step, a bare loop."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import orjson

from streamnb.base.record import Partition, RecordBatch
from streamnb.config import Settings, build_decoder, build_engine, build_model, load_settings
from streamnb.config.endpoints import LinesInput, LinesOutput
from streamnb.config.engines import assemble
from streamnb.config.settings import DeadLetterSettings
from streamnb.engine.clock import SystemClock
from streamnb.engine.dead_letters import DeadLetters
from streamnb.engine.engine import Engine
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.evaluation import LiveEvaluation
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.memory import END, MemoryLog, MemorySink, MemorySource
from streamnb.wire.score import encode_scores
from tests.bench.common import ROOT


def base_settings() -> Settings:
    """`configs/spam.toml`; the empty poll that ends a run waits 10 ms rather than 200."""
    return load_settings(ROOT / "configs" / "spam.toml", ["engine.poll_timeout_ms=10"])


def batches_of(lines: Sequence[bytes], size: int) -> Iterator[RecordBatch]:
    """Records as the engine polls them."""
    for begin in range(0, len(lines), size):
        values: list[bytes | None] = [*lines[begin : begin + size]]
        n = len(values)
        offsets = range(begin, begin + n)
        yield RecordBatch(Partition("bench", 0), offsets, values, [None] * n, [-1] * n, [()] * n, begin + n)


def step_alone(lines: Sequence[bytes]) -> float:
    """Score and learn messages that are decoded already."""
    settings = base_settings()
    model, decoder = build_model(settings), build_decoder(settings)
    size = settings.engine.batch_records_max
    decoded = [decoder.decode(records).batch for records in batches_of(lines, size)]
    began = time.perf_counter()
    for batch in decoded:
        model.step(batch)
    return len(lines) / (time.perf_counter() - began)


def a_score(lines: Sequence[bytes]) -> dict[str, object]:
    """What the engine says of the last of the first 200 messages."""
    settings = base_settings()
    records = next(batches_of(lines[:200], 200))
    messages = build_decoder(settings).decode(records)
    scores = encode_scores(
        build_model(settings).step(messages.batch),
        ids=messages.ids,
        model=settings.model.name,
        partition=records.partition,
        offsets=[records.offsets[row] for row in messages.rows],
    )
    return dict(orjson.loads(scores[-1]))


def timed(engine: Engine, n: int) -> float:
    """Run an engine to the end of its source."""
    try:
        engine.source.open({}, "earliest")  # connects; `run` opens again, on the same connection
        if engine.delivery.transactions is not None:
            engine.delivery.transactions.recover(
                ()
            )  # the same: the first time the broker looks for its coordinator
        began = time.perf_counter()
        summary = engine.run()
        seconds = time.perf_counter() - began
    finally:
        engine.close()
    assert summary.scored == n, summary
    return n / seconds


def engine_over_memory(lines: Sequence[bytes], folder: Path) -> float:
    """The engine between two logs in memory."""
    settings, clock, log = base_settings(), SystemClock(), MemoryLog()
    for line in lines:
        log.append(line)
    log.append(END)
    engine = assemble(
        model=Model(settings.model.name, build_model(settings), build_decoder(settings)),
        source=MemorySource(log),
        sink=MemorySink(MemoryLog(topic="scores")),
        dead_letters=DeadLetters(MemorySink(MemoryLog(topic="dead")), clock, settings.dead_letters),
        store=SnapshotDirectory(folder / "snapshots"),
        settings=settings.engine,
        snapshots=settings.snapshots,
        output=settings.output,
        clock=clock,
        metrics=Metrics(),
        evaluation=LiveEvaluation(),
    )
    return timed(engine, len(lines))


def engine_over_lines(lines: Sequence[bytes], folder: Path) -> float:
    """The engine from a file to a file."""
    messages, scores = folder / "messages.jsonl", folder / "scores.jsonl"
    messages.write_bytes(b"\n".join([*lines, b""]))
    settings = msgspec.structs.replace(
        base_settings(),
        source=LinesInput(str(messages)),
        sink=LinesOutput(str(scores)),
        dead_letters=DeadLetterSettings(sink=LinesOutput(str(folder / "dead.jsonl"))),
    )
    return timed(assembled(settings, folder), len(lines))


def bare_lines(lines: Sequence[bytes], score: dict[str, object], folder: Path) -> float:
    """Read a line, decode it, encode a score, write it; sync at the end."""
    messages, scores = folder / "messages.jsonl", folder / "scores.jsonl"
    messages.write_bytes(b"\n".join([*lines, b""]))
    with messages.open("rb") as source, scores.open("wb") as sink:
        began = time.perf_counter()
        for line in source:
            score["id"] = orjson.loads(line).get("id")
            sink.write(orjson.dumps(score) + b"\n")
        sink.flush()
        os.fsync(sink.fileno())
        return len(lines) / (time.perf_counter() - began)


def assembled(settings: Settings, folder: Path) -> Engine:
    """Build an engine that keeps its snapshots in `folder` and stops at the end of its source."""
    snapshots = msgspec.structs.replace(settings.snapshots, directory=str(folder / "snapshots"))
    settings = msgspec.structs.replace(settings, snapshots=snapshots)
    return build_engine(settings, metrics=Metrics(), until_end=True)
