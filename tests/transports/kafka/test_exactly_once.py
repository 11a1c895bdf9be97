"""With exactly-once scores, a `read_committed` reader sees each score once, whatever is killed."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from kafka.errors import KafkaError, ProducerFencedError

from deploy.kafka.broker import Broker
from streamnb.base.record import Partition
from streamnb.config import build_engine, load_settings, load_snapshot
from streamnb.engine.metrics import Metrics
from streamnb.errors import FencedError, SettingsError
from streamnb.transports.confluent import ConfluentTransactions
from streamnb.transports.kafka.producer import is_fenced
from streamnb.transports.kafka.transactions import KafkaTransactions
from tests.transports.kafka.accidents import CLIENTS, Child
from tests.transports.kafka.test_pipeline import Pipeline, order_free_digest, pipeline, plain_loop

BOUNCE_EVERY = 5
SETTINGS = """
scores = "exactly_once"
"""


def exactly_once(
    broker: str, tmp_path: Path, partitions: int, client: str = "kafka", *, times: int = 1
) -> Pipeline:
    """Return a pipeline that publishes its scores in transactions, through this client."""
    pipe = pipeline(broker, tmp_path, "mailbox", partitions, times=times, batch_records_max=50)
    text = pipe.config.read_text().replace("[engine]\n", f"[engine]{SETTINGS}")
    text = text.replace('kind = "kafka"\ntopics', f'kind = "kafka"\ngroup = "{pipe.run}"\ntopics')
    text = text.replace('kind = "kafka"', f'kind = "{client}"')
    pipe.config.write_text(f'{text}\n[confluent]\nbootstrap.servers = "{broker}"\n')
    return pipe


def transactions(client: str, broker: str, group: str) -> KafkaTransactions | ConfluentTransactions:
    """Return transactions of a group through this client."""
    if client == "confluent":
        return ConfluentTransactions({"bootstrap.servers": broker}, group)
    return KafkaTransactions({"bootstrap_servers": broker}, group)


def start(pipe: Pipeline) -> subprocess.Popen[str]:
    """Start the engine and wait until it is ready."""
    process = pipe.start()
    assert process.stderr is not None
    said = [process.stderr.readline()]
    while "ready at" not in said[-1]:
        assert said[-1], f"the engine ended before it was ready: {said}"
        said.append(process.stderr.readline())
    return process


def begun(
    starter: subprocess.Popen[str], pipe: Pipeline, client: str = "kafka", *, rebuild: bool = False
) -> Child:
    """Start the engine in a `Child`, which collects its log, and wait until it is ready."""
    child = Child(starter, pipe.config, pipe.broker, client, until_end=True, rebuild=rebuild)
    child.wait_until_ready()
    return child


def damage(pipe: Pipeline) -> None:
    """Cut the last byte off every snapshot."""
    for path in pipe.directory.glob("*.snb"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1])


def assert_each_is_seen_once(pipe: Pipeline) -> None:
    """Check that a `read_committed` reader sees each score once, and that each label was learned once."""
    for number, scored in pipe.scores().items():
        seen = Counter(offset for offset, _ in scored)

        assert set(seen) == set(range(len(pipe.batches()[number])))
        assert max(seen.values()) == 1
    assert pipe.digest()["order_free"] == order_free_digest(pipe)


@pytest.mark.crash
@pytest.mark.timeout(0)
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("client", CLIENTS)
def test_B16_killed_at_random_it_publishes_each_score_once(
    own_broker: Broker,
    starter: subprocess.Popen[str],
    tmp_path: Path,
    client: str,
    partitions: int,
    kills: int,
    seed: int,
) -> None:
    """The next start ends the open transaction, and learns again without publishing twice.

    Every fifth kill hits the broker, the others hit the engine. After some of these all snapshots are
    deleted, or damaged and then set aside by ``--rebuild``. There are a tenth of ``--kills`` kills, and 4,000
    records for each.
    """
    accidents = max(2, kills // 10)
    times = max(1, accidents * 4 // 5)
    pipe = exactly_once(own_broker.address, tmp_path, partitions, client, times=times)
    moments = random.Random(f"{seed}/{partitions}")
    killed = Counter[str]()
    child = begun(starter, pipe, client)
    while killed.total() < accidents and child.is_alive():
        time.sleep(moments.uniform(0.0, 0.1 if accidents < 10 else 0.6))
        if killed.total() % BOUNCE_EVERY == BOUNCE_EVERY - 1:
            killed["broker killed"] += 1
            own_broker.kill()
            own_broker.start()
        else:
            child.kill()
            lost, damaged = killed.total() % 7 == 2, killed.total() % 7 == 6
            if lost:
                shutil.rmtree(pipe.directory, ignore_errors=True)
            elif damaged:
                damage(pipe)
            killed["snapshots lost" if lost else "rebuilt" if damaged else "engine killed"] += 1
            child = begun(starter, pipe, client, rebuild=damaged)

    assert child.ended(3600) == 0, "".join(child.said)
    assert killed.total() == accidents or accidents > 2, "the stream was over first"
    assert_each_is_seen_once(pipe)
    if partitions == 1:
        assert plain_loop(pipe.config)[1].digest() == pipe.digest()
    print(f"{client}, {len(pipe.lines):,} records, {partitions} partitions: {dict(killed)}")


def run_in_process(
    pipe: Pipeline, *changes: str, rebuild: bool = False, begin_from: Path | None = None
) -> None:
    """Run an engine to the end of the input."""
    settings = load_settings(pipe.config, changes)
    engine = build_engine(settings, metrics=Metrics(), until_end=True, rebuild=rebuild)
    try:
        engine.run(load_snapshot(begin_from) if begin_from is not None else None)
    finally:
        engine.close()


@pytest.mark.parametrize("how", ["lost", "rebuild", "second directory", "from a snapshot"])
@pytest.mark.parametrize("client", CLIENTS)
def test_F7_scores_are_published_once_whatever_becomes_of_the_snapshots(
    broker: str, tmp_path: Path, client: str, how: str
) -> None:
    """The offsets that transactions committed under the group tell what was published; all is learned."""
    pipe = exactly_once(broker, tmp_path, 1, client)
    run_in_process(pipe)
    snapshots = sorted(pipe.directory.glob("*.snb"))
    elsewhere = f"snapshots.directory={tmp_path}/elsewhere"
    if how == "lost":
        for path in snapshots:
            path.unlink()
        run_in_process(pipe)
    elif how == "rebuild":
        damage(pipe)
        run_in_process(pipe, rebuild=True)
    elif how == "second directory":
        run_in_process(pipe, elsewhere)
    else:
        lines = [
            f'{table}={{kind="jsonl", path="{tmp_path}/{table}"}}' for table in ("sink", "dead_letters.sink")
        ]
        history = tmp_path / "history"
        changes = ["engine.scores=at_least_once", f"snapshots.directory={history}", "source.group=history"]
        run_in_process(pipe, *lines, *changes)
        run_in_process(pipe, elsewhere, begin_from=max(history.glob("*.snb")))

    assert [offset for offset, _ in pipe.scores()[0]] == list(range(len(pipe.lines)))
    if how in {"lost", "rebuild"}:
        assert pipe.digest()["order_free"] == order_free_digest(pipe)


@pytest.mark.parametrize(("first", "second"), [CLIENTS, CLIENTS[::-1]])
def test_what_one_client_published_the_other_does_not_publish_again(
    broker: str, tmp_path: Path, first: str, second: str
) -> None:
    """Transactional id, group and committed offsets are the same for both."""
    pipe = exactly_once(broker, tmp_path, 1, first)
    run_in_process(pipe)
    for path in pipe.directory.glob("*.snb"):
        path.unlink()
    text = pipe.config.read_text()
    pipe.config.write_text(text.replace(f'kind = "{first}"', f'kind = "{second}"'))
    run_in_process(pipe)

    assert [offset for offset, _ in pipe.scores()[0]] == list(range(len(pipe.lines)))
    assert pipe.digest()["order_free"] == order_free_digest(pipe)


@pytest.mark.parametrize("client", CLIENTS)
def test_F7_offsets_that_were_only_advice_hide_no_score(broker: str, tmp_path: Path, client: str) -> None:
    """An at-least-once engine commits offsets under the same group, but only for lag tools."""
    pipe = exactly_once(broker, tmp_path, 1, client)
    run_in_process(pipe, "engine.scores=at_least_once")
    run_in_process(pipe, f"snapshots.directory={tmp_path}/elsewhere")

    assert [offset for offset, _ in pipe.scores()[0]] == 2 * list(range(len(pipe.lines)))


@pytest.mark.parametrize("second", CLIENTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_B15_a_second_producer_of_the_group_shuts_the_first_out(
    broker: str, tmp_path: Path, client: str, second: str
) -> None:
    """The first is fenced even if both have their own snapshot directories; its transaction is aborted."""
    pipe = exactly_once(broker, tmp_path, 1, client)
    settings = load_settings(pipe.config)
    first = build_engine(settings, metrics=Metrics(), until_end=True)
    process = first.processing.process

    def overtaken(records: object) -> None:
        process(records)  # type: ignore[arg-type]
        other = transactions(second, broker, pipe.run)
        other.recover([Partition(f"{pipe.run}-mail", 0)])
        other.close()

    first.processing.process = overtaken  # type: ignore[method-assign]
    with pytest.raises(FencedError):
        first.run()
    first.close()

    assert pipe.scores() == {0: []}

    _, errors = (again := pipe.start()).communicate(timeout=60)

    assert again.returncode == 0, errors
    assert_each_is_seen_once(pipe)


@pytest.mark.parametrize("client", CLIENTS)
def test_B12_a_learner_that_stood_still_while_another_took_over_does_no_harm(
    broker: str, tmp_path: Path, client: str
) -> None:
    """After SIGSTOP and SIGCONT its open transaction is refused, and it exits as fenced."""
    pipe = exactly_once(broker, tmp_path, 1, client)
    zombie = start(pipe)
    zombie.send_signal(signal.SIGSTOP)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in pipe.directory.glob("*.snb"):
        (elsewhere / path.name).write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "streamnb", "run", str(pipe.config), "--until-end"]
    command += ["--set", f"snapshots.directory={elsewhere}"]
    other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    zombie.send_signal(signal.SIGCONT)
    _, errors = zombie.communicate(timeout=60)

    assert other.returncode == 0, other.stderr
    assert zombie.returncode == FencedError.exit_code, errors
    assert "This learner was fenced" in errors
    assert [offset for offset, _ in pipe.scores()[0]] == list(range(5000))


def test_B12_what_the_client_was_told_before_it_refuses_to_send_is_heard() -> None:
    """The client wraps the fencing error in another one; unrecognized, the fenced learner would restart."""
    refused = KafkaError("Cannot perform send because at least one previous request has failed.")
    assert is_fenced(KafkaError(*refused.args, ProducerFencedError()))
    assert is_fenced(ProducerFencedError())
    assert not is_fenced(refused)


@pytest.mark.parametrize("client", CLIENTS)
def test_B2_a_broker_killed_and_started_again_is_gone_on_with(
    own_broker: Broker, tmp_path: Path, client: str
) -> None:
    """The open transaction may be lost with the broker; then the engine restarts from its last snapshot."""
    pipe = exactly_once(own_broker.address, tmp_path, 3, client, times=4)
    process = start(pipe)
    time.sleep(0.3)
    own_broker.kill()
    own_broker.start()
    _, errors = process.communicate(timeout=200)

    assert process.returncode == 0, errors
    assert_each_is_seen_once(pipe)


def test_a_sink_without_transactions_is_refused(tmp_path: Path) -> None:
    """Exactly-once scores need Kafka sinks, and a source with a group."""
    config = tmp_path / "lines.toml"
    endpoints = '[source]\nkind = "kafka"\ntopics = ["mail"]\n[kafka]\nbootstrap_servers = "127.0.0.1:1"\n'
    config.write_text(
        f'{endpoints}[sink]\nkind = "jsonl"\npath = "a"\n[dead_letters.sink]\nkind = "jsonl"\npath = "b"\n'
        f'[engine]{SETTINGS}[snapshots]\ndirectory = "{tmp_path}/snapshots"\n'
    )
    with pytest.raises(SettingsError, match="in one Kafka cluster"):
        build_engine(load_settings(config), metrics=Metrics())
    config.write_text(
        f'{endpoints}[sink]\nkind = "kafka"\ntopic = "a"\n'
        f'[dead_letters.sink]\nkind = "confluent"\ntopic = "b"\n'
        '[confluent]\nbootstrap.servers = "127.0.0.1:1"\n'
        f'[engine]{SETTINGS}[snapshots]\ndirectory = "{tmp_path}/snapshots"\n'
    )
    with pytest.raises(SettingsError, match="in one Kafka cluster"):
        build_engine(load_settings(config), metrics=Metrics())
    config.write_text(
        f'{endpoints}[sink]\nkind = "kafka"\ntopic = "a"\n[dead_letters.sink]\nkind = "kafka"\ntopic = "b"\n'
        f'[engine]{SETTINGS}[snapshots]\ndirectory = "{tmp_path}/snapshots"\n'
    )
    with pytest.raises(SettingsError, match=r"needs `source\.group`"):
        build_engine(load_settings(config), metrics=Metrics())
