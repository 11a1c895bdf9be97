"""An engine over a faulty disk and a faulty broker: no schedule of accidents breaks an invariant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from streamnb.base.offsets import Account
from streamnb.base.record import Partition, RecordBatch
from streamnb.engine import delivery, processing
from streamnb.engine.dead_letters import DeadLetters
from streamnb.engine.snapshots import Snapshots
from streamnb.storage import files
from tests.support.faulty_disk import FaultyDisk
from tests.support.simulation import campaign, simulate

KINDS = ("Crash", "power cut", "DeliveryError", "StorageError", "TransactionError")
PARTS = 4  # of the campaign: together they are as many schedules as `--runs` says


@pytest.mark.parametrize("part", range(PARTS))
def test_C1_no_schedule_of_accidents_breaks_an_invariant(part: int, runs: int, seed: int) -> None:
    """Accidents are kills, power cuts, disk errors, lost and repeated deliveries, and unknown commits."""
    seeds = range(seed + runs * part // PARTS, seed + runs * (part + 1) // PARTS)
    broken, deaths = campaign(seeds)

    assert broken == []
    assert min(deaths[kind] for kind in KINDS) > len(seeds) / 20


def test_a_seed_is_the_same_life_every_time() -> None:
    """So a failure can be reproduced from its seed."""
    for seed in range(20):
        first, second = simulate(seed), simulate(seed)
        assert (first.lives, first.deaths) == (second.lives, second.deaths)
        assert first.disk.done == second.disk.done


def _never_synced(real: Callable[..., None]) -> Callable[..., None]:
    del real
    return lambda *_: None


def _without_flush(real: Callable[..., None]) -> Callable[..., None]:
    def begin(self: Snapshots) -> None:
        sink = self.delivery.sink
        flush, sink.flush = sink.flush, lambda timeout_ms: None  # type: ignore[method-assign]  # noqa: ARG005
        try:
            real(self)
        finally:
            sink.flush = flush  # type: ignore[method-assign]

    return begin


def _off_by_one(real: Callable[..., dict[str, int]]) -> Callable[..., dict[str, int]]:
    def advance(self: Account, next_offset: int, **outcome: int) -> dict[str, int]:
        found = real(self, next_offset, **outcome)
        if self.scored % 5 == 4:
            self.start += 1
            self.next_offset += 1
        return found

    return advance


def _nothing_published(
    real: Callable[..., tuple[dict[Partition, int], object]],
) -> Callable[..., tuple[dict[Partition, int], object]]:
    def published(*asked: object) -> tuple[dict[Partition, int], object]:
        before, change = real(*asked)
        return dict.fromkeys(before, 0), change

    return published


def _first_of_the_next_lost(real: Callable[..., object]) -> Callable[..., object]:
    def selected(*columns: object, published_before: int, **more: object) -> object:
        return real(*columns, published_before=published_before + bool(published_before), **more)

    return selected


def _stubs_again(real: Callable[..., None]) -> Callable[..., None]:
    def publish(
        self: DeadLetters, records: RecordBatch, refused: list[object], first_offset: int = 0
    ) -> None:
        real(self, replace(records, unreadable=[]), refused, first_offset)
        real(self, replace(records, values=[]), [], 0)

    return publish


@pytest.mark.parametrize(
    ("owner", "name", "mistake", "invariant"),
    [
        (files, "sync_directory", _never_synced, "I5|I6"),
        (FaultyDisk, "fsync", _never_synced, "I5|I6"),
        (Snapshots, "_begin", _without_flush, "I8"),
        (Account, "advance", _off_by_one, "I5|I8|I7"),
        (delivery, "published_before", _nothing_published, "I2 once"),
        (processing, "select", _first_of_the_next_lost, "I2|I8"),
        (DeadLetters, "publish", _stubs_again, "I2 once"),
    ],
    ids=[
        "the directory is not synced",
        "nothing is synced",
        "no flush",
        "an offset too far",
        "published again",
        "the score at the committed offset lost",
        "stubs published again",
    ],
)
def test_a_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, mistake: Callable[..., object], invariant: str
) -> None:
    """The simulation can fail: each mistake breaks the invariant that protects against it."""
    monkeypatch.setattr(owner, name, mistake(getattr(owner, name)))
    broken, _ = campaign(range(200 if mistake is _stubs_again else 80))  # stubs are rare

    assert len(broken) > 3
    assert any(word in line for line in broken for word in invariant.split("|"))
