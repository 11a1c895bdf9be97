"""Random accidents of an engine on a real broker, and the invariants that must hold after each.

``pytest tests/transports/kafka/test_crash.py --kills 1000 --seed 7`` is the long campaign. The accidents are:
``kill -9``, also during recovery; a pause (SIGSTOP); SIGTERM; connections that are cut, cut between request
and response, or slow; a full disk; a second learner; a flipped bit in the newest snapshot; a broker that is
killed and restarted. The oracle is a plain loop over the same lines.
"""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

import pytest

from deploy.kafka.broker import Broker
from streamnb.base.snapshot import Snapshot
from streamnb.config import build_decoder, build_model
from tests.support.streams import streams_at_hand
from tests.transports.kafka.accidents import Accidents, loaded
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_pipeline import (
    Pipeline,
    assert_every_message_is_scored_in_order,
    assert_scores_are_from_before_their_label,
    batch_of,
    order_free_digest,
    pipeline,
    plain_loop,
)


def newest_of(directory: Path) -> Snapshot | None:
    """Return the newest snapshot that loads, or None; an engine may be writing at the same time."""
    found = (loaded(path) for path in sorted(directory.glob("snapshot-*.snb"), reverse=True))
    return next((snapshot for snapshot in found if snapshot is not None), None)


def assert_newest_is_its_prefix(pipe: Pipeline, before: Snapshot | None) -> Snapshot | None:
    """Check I5 and I6: a snapshot holds exactly the records before its offsets, and none goes back."""
    newest = newest_of(pipe.directory)
    if newest is None:
        assert before is None
        return None
    ends = {partition.number: account.next_offset for partition, account in newest.accounts.items()}
    model, decoder = build_model(pipe.settings), build_decoder(pipe.settings)
    for batch in pipe.batches():
        values = [value or b"" for value in batch.values[: ends.get(batch.partition.number, 0)]]
        prefix = batch_of(batch.partition.topic, batch.partition.number, values)
        model.step(decoder.decode(prefix).batch, score=False)
    assert model.digest()["order_free"] == newest.digest["order_free"]
    assert all(account.balance() == 0 for account in newest.accounts.values())
    if before is not None:
        assert newest.sequence >= before.sequence
        assert all(newest.accounts[one].next_offset >= at.next_offset for one, at in before.accounts.items())
    return newest


@pytest.mark.crash
@pytest.mark.timeout(0)
@pytest.mark.parametrize("partitions", [1, 3])
def test_C1_C3_B2_B3_no_accident_loses_or_doubles_a_message(
    proxied: tuple[Broker, Proxy, str],
    starter: subprocess.Popen[str],
    tmp_path: Path,
    partitions: int,
    kills: int,
    seed: int,
) -> None:
    """Each label is learned once and each message scored in order, before its label (I1 to I9)."""
    broker, proxy, address = proxied
    (stream,) = streams_at_hand("sms")
    pipe = pipeline(
        broker.address, tmp_path, stream, partitions, times=max(1, kills // 20), batch_records_max=20
    )
    accidents = Accidents(starter, pipe, broker, proxy, address, random.Random(f"{seed}/{partitions}"))
    newest = None
    for number in range(kills // 2):
        accidents.inflict(number)
        if number % 5 == 0:
            newest = assert_newest_is_its_prefix(pipe, None if accidents.damaged else newest)
            accidents.damaged = False
    accidents.child.signal(signal.SIGTERM)
    accidents.child.ended()
    for _ in range(5):  # the broker may have been down at the start of the last one
        if (last := accidents.start(until_end=True)).ended(300) == 0:
            break
    assert_newest_is_its_prefix(pipe, None if accidents.damaged else newest)

    assert sum(accidents.counted.values()) == kills // 2
    assert [path.name for path in pipe.directory.iterdir() if path.suffix == ".tmp"] == [], "I9"
    assert "stopped after" in "".join(last.said)
    assert_every_message_is_scored_in_order(pipe)
    assert_scores_are_from_before_their_label(pipe, seed)
    assert order_free_digest(pipe) == pipe.digest()["order_free"]
    if partitions == 1:
        assert plain_loop(pipe.config)[1].digest() == pipe.digest()
    print(f"{partitions} partitions: {dict(accidents.counted)}")
