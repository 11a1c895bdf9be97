"""The direction of knowledge: each room imports from the rooms below it, and no room is left out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "streamnb"

# From the bottom to the top. A room may import from rooms of lower lines; rooms of one line do not know each
# other. This is the data's path: record -> message -> tokens -> counts -> evidence -> posterior -> score.
LAYERS = (
    ("__init__",),
    (
        "base",
        "naive_bayes",
        "naive_bayes.features",
        "naive_bayes.statistics",
        "naive_bayes.posterior",
        "naive_bayes.model",
        "wire",
        "storage",
        "engine",
        "config",
        "transports.kafka",
        "transports.confluent",
        "cli.demo",
    ),
    ("errors", "naive_bayes.posterior.odds"),
    ("storage.os_errors", "wire.json_faults"),
    ("storage.files", "storage.lock", "base.record", "base.batch", "cli.demo.mailbox"),
    (
        "wire.abstention",
        "naive_bayes.features.alphabet",
        "engine.clock",
        "naive_bayes.statistics.digest",
        "engine.metrics_server",
        "base.frozen",
        "engine.signals",
        "wire.template",
        "engine.watchdog",
    ),
    ("naive_bayes.features.entities", "naive_bayes.features.stop_words"),
    ("naive_bayes.features.tokenizer",),
    ("naive_bayes.statistics.forgetting",),
    ("naive_bayes.statistics.decay",),
    ("naive_bayes.statistics.inverse_scatter", "naive_bayes.statistics.bin_edges"),
    (
        "naive_bayes.event_models.smoothing",
        "naive_bayes.features.blocks",
        "base.offsets",
        "storage.container",
        "wire.message",
        "engine.metrics",
    ),
    ("storage.migrations", "storage.retention"),
    ("naive_bayes.statistics.count_arrays",),
    (
        "naive_bayes.statistics.counts",
        "naive_bayes.statistics.moments",
        "naive_bayes.statistics.scatter",
        "naive_bayes.statistics.absent_words",
        "naive_bayes.statistics.field_totals",
        "base.snapshot",
    ),
    ("naive_bayes.statistics.scatter_block", "naive_bayes.statistics.bin_counts"),
    (
        "naive_bayes.event_models.contract",
        "naive_bayes.event_models.multinomial",
        "naive_bayes.event_models.bernoulli",
        "naive_bayes.event_models.categorical",
        "naive_bayes.event_models.gaussian",
        "naive_bayes.event_models.multivariate",
        "naive_bayes.event_models.binned",
    ),
    ("naive_bayes.event_models",),
    ("naive_bayes.model.view", "naive_bayes.posterior.calibrated_head"),
    ("naive_bayes.model.reading", "naive_bayes.posterior.explanation"),
    ("naive_bayes._kernel",),
    ("naive_bayes.model.compiled", "wire.score", "storage.lines"),
    ("naive_bayes.model.state",),
    ("naive_bayes.model.scoring",),
    (
        "naive_bayes.model.merging",
        "naive_bayes.model.linear",
        "naive_bayes.model.sampling",
        "naive_bayes.model.informative",
    ),
    ("naive_bayes.model.step",),
    ("naive_bayes.model.naive_bayes", "base.protocols"),
    (
        "engine.settings",
        "engine.delivery",
        "engine.guard",
        "engine.dead_letters",
        "engine.recovery",
        "storage.directory",
    ),
    ("naive_bayes.estimators.frames", "evaluation.outcomes"),
    ("evaluation.ranking", "evaluation.feedback", "evaluation.drift"),
    ("evaluation.intervals",),
    ("evaluation.tally",),
    ("evaluation.prequential",),
    ("evaluation.comparison",),
    ("evaluation",),
    ("evaluation.live", "evaluation.report"),
    ("engine.snapshot_writer", "engine.processing"),
    ("naive_bayes.estimators.estimator",),
    ("naive_bayes.estimators.words", "naive_bayes.estimators.fields", "naive_bayes.estimators.any_fields"),
    ("naive_bayes.estimators",),
    ("engine.engine",),
    ("engine.supervision",),
    ("transports",),
    ("transports.topics", "transports.kafka.decompression", "transports.kafka.connections"),
    (
        "transports.kafka.client",
        "transports.kafka.records",
        "transports.confluent.client",
        "transports.embedded",
    ),
    ("transports.kafka.producer",),
    ("transports.kafka.sink", "transports.confluent.sink"),
    ("transports.memory", "transports.jsonl", "transports.kafka.source", "transports.confluent.source"),
    ("transports.kafka.transactions", "transports.memory_transactions"),
    ("cli.history",),
    ("config.endpoints",),
    ("config.settings",),
    ("config.assembly",),
    ("cli.peers.base", "cli.tuning"),
    ("cli.peers.river", "cli.peers.sklearn", "cli.peers.vowpal"),
    ("cli.peers",),
    ("config.checks", "cli.demo.demo", "cli.produce", "cli.generate", "cli.snapshot_diff", "cli.export"),
    ("cli.shared", "cli.tables"),
    ("cli.run", "cli.models", "cli.evaluate", "cli.snapshots"),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

MATHEMATICS = {
    "naive_bayes.features.alphabet",
    "naive_bayes.features.entities",
    "naive_bayes.features.stop_words",
    "naive_bayes.features.tokenizer",
    "naive_bayes.event_models.smoothing",
    "naive_bayes.statistics.forgetting",
    "naive_bayes.statistics.decay",
    "naive_bayes.statistics.inverse_scatter",
    "naive_bayes.statistics.bin_edges",
    "naive_bayes.features.blocks",
    "naive_bayes.posterior.odds",
    "naive_bayes.statistics.count_arrays",
    "naive_bayes.statistics.counts",
    "naive_bayes.statistics.moments",
    "naive_bayes.statistics.scatter",
    "naive_bayes.statistics.scatter_block",
    "naive_bayes.statistics.bin_counts",
    "naive_bayes.statistics.absent_words",
    "naive_bayes.statistics.field_totals",
    "naive_bayes.event_models.multivariate",
    "naive_bayes.event_models.binned",
    "naive_bayes.event_models",
    "naive_bayes.event_models.contract",
    "naive_bayes.event_models.multinomial",
    "naive_bayes.event_models.bernoulli",
    "naive_bayes.event_models.categorical",
    "naive_bayes.event_models.gaussian",
    "naive_bayes.model.view",
    "naive_bayes.posterior.calibrated_head",
    "naive_bayes.model.reading",
    "naive_bayes.posterior.explanation",
    "naive_bayes.model.compiled",
    "naive_bayes.model.state",
    "naive_bayes.model.scoring",
    "naive_bayes.model.merging",
    "naive_bayes.model.linear",
    "naive_bayes.model.informative",
    "naive_bayes.model.sampling",
    "naive_bayes.model.step",
    "naive_bayes.model.naive_bayes",
    "naive_bayes.estimators",
    "naive_bayes.estimators.frames",
    "naive_bayes.estimators.estimator",
    "naive_bayes.estimators.words",
    "naive_bayes.estimators.fields",
    "naive_bayes.estimators.any_fields",
}
STREAM = {
    "base.record",
    "wire.message",
    "wire.score",
    "base.offsets",
    "base.snapshot",
    "storage.directory",
    "engine.snapshot_writer",
    "base.protocols",
    "engine.engine",
    "engine.settings",
    "engine.processing",
    "engine.delivery",
    "engine.guard",
    "engine.supervision",
    "engine.dead_letters",
}


def room_of(path: Path) -> str:
    """``streamnb/transports/jsonl.py`` is the room ``transports.jsonl``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports_of(path: Path) -> set[str]:
    """The rooms a file imports, those inside functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it goes"
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            room = name.removeprefix("streamnb.")
            if name == "streamnb":
                found.add("__init__")
            elif name.startswith("streamnb.") and room in LEVEL:
                found.add(room)
    return found


FILES = {room_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def test_every_room_has_its_place() -> None:
    """A new file must say where it stands."""
    assert set(LEVEL) == set(FILES)


@pytest.mark.parametrize("room", sorted(FILES))
def test_a_room_knows_only_the_rooms_below_it(room: str) -> None:
    """The import law."""
    above = {other for other in imports_of(FILES[room]) - {room} if LEVEL[other] >= LEVEL[room]}

    assert above <= {"__init__"} if room.startswith("__") else not above


@pytest.mark.parametrize("room", sorted(MATHEMATICS & set(FILES)))
def test_the_mathematics_does_not_know_that_there_is_a_stream(room: str) -> None:
    """No record, offset or engine below a model."""
    assert not imports_of(FILES[room]) & STREAM


@pytest.mark.parametrize(
    "room",
    ["engine", "dead_letters", "snapshots", "snapshot_writer", "protocols", "metrics"]
    + [room for room in sorted(FILES) if room.startswith("evaluation")],
)
def test_the_engine_knows_neither_mathematics_nor_world(room: str) -> None:
    """No model class, no transport, no configuration."""
    worlds = {other for other in FILES if other.startswith("transports")}

    assert not imports_of(FILES[room]) & (MATHEMATICS | worlds | {"config", "assembly", "cli"})


@pytest.mark.parametrize("path", sorted((PACKAGE / "transports").glob("*.py")), ids=lambda path: path.stem)
def test_a_transport_knows_no_other_world(path: Path) -> None:
    """The parts of one Kafka transport know each other, and what is the same of both; nothing else does."""
    own = path.stem.partition("_")[0]
    others = {room.removeprefix("transports.") for room in imports_of(path) if room.startswith("transports.")}
    others -= {"topics"} if own in {"kafka", "confluent"} else set()

    assert {other for other in others if other != own and not other.startswith(f"{own}_")} == set()


def test_only_three_rooms_open_files() -> None:
    """Everything else goes through them, so that a disk can be made to fail."""
    openers = set()
    for room, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                is_method = isinstance(node.func, ast.Attribute) and not (
                    isinstance(node.func.value, ast.Name) and node.func.value.id in {"os", "io", "gzip"}
                )
                opens = name in {"open", "FileIO"} and not is_method
                if opens or name in {"read_text", "write_text", "read_bytes", "write_bytes"}:
                    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                    if not (isinstance(receiver, ast.Name) and receiver.id == "files"):
                        openers.add(room)

    assert openers == {"files", "lock", "lines"}


@pytest.mark.parametrize("word", ["pickle", "eval(", "exec(", "yaml", "marshal", "shelve", "allow_pickle"])
def test_G9_nothing_that_is_loaded_can_run(word: str) -> None:
    """No load path may execute what it reads."""
    assert [room for room, path in FILES.items() if word in path.read_text()] == []


def test_rooms_are_small() -> None:
    """The median file has at most 200 lines; a file over 400 says at its top why."""
    lengths = {room: len(path.read_text().splitlines()) for room, path in FILES.items()}
    ordered = sorted(lengths.values())
    long = [room for room, n in lengths.items() if n > 400 and "long because" not in FILES[room].read_text()]

    assert ordered[len(ordered) // 2] <= 200
    assert long == []
