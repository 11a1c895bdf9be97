"""The direction of knowledge: each room imports from the rooms below it, and no room is left out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "streamnb"

# From the bottom to the top. A room may import from rooms of lower lines; rooms of one line do not know each
# other. This is the data's path: record -> message -> tokens -> counts -> evidence -> posterior -> score.
LAYERS = (
    ("__init__",),
    ("errors", "posterior"),
    ("refusals", "not_json"),
    ("files", "lock", "record", "columns", "mailbox"),
    (
        "abstention",
        "alphabet",
        "clock",
        "digest",
        "metrics_page",
        "sections",
        "stopping",
        "template",
        "watchdog",
    ),
    ("whole", "stop_words"),
    ("tokens",),
    ("forgetting",),
    ("fading",),
    ("inverse", "bins"),
    ("smoothing", "blocks", "offsets", "container", "message", "metrics"),
    ("migrations", "retention"),
    ("count_sections",),
    ("counts", "moments", "scatter", "occurrences", "field_totals", "snapshot"),
    ("scatter_block", "bin_counts"),
    (
        "event_models.own",
        "event_models.multinomial",
        "event_models.bernoulli",
        "event_models.categorical",
        "event_models.gaussian",
        "event_models.multivariate",
        "event_models.binned",
    ),
    ("event_models",),
    ("view", "head"),
    ("reading", "explanation"),
    ("_kernel",),
    ("twins", "score", "lines"),
    ("state",),
    ("scorer",),
    ("sums", "linear", "sampling", "telling"),
    ("learner",),
    ("naive_bayes", "protocols"),
    ("loop", "delivery", "guard", "dead_letters", "recovery", "snapshots"),
    ("classifiers.frames", "evaluation.outcomes"),
    ("evaluation.ranking", "evaluation.feedback", "evaluation.drift"),
    ("evaluation.intervals",),
    ("evaluation.tally",),
    ("evaluation.prequential",),
    ("evaluation.comparison",),
    ("evaluation",),
    ("evaluation.live", "page"),
    ("snapshot_writer", "processing"),
    ("classifiers.estimator",),
    ("classifiers.words", "classifiers.fields", "classifiers.mixed"),
    ("classifiers",),
    ("engine",),
    ("supervision",),
    ("transports",),
    ("transports.topics", "transports.kafka_decompression", "transports.kafka_net"),
    (
        "transports.kafka_client",
        "transports.kafka_records",
        "transports.confluent_client",
        "transports.embedded",
    ),
    ("transports.kafka_producer",),
    ("transports.kafka_sink", "transports.confluent_sink"),
    ("transports.memory", "transports.jsonl", "transports.kafka", "transports.confluent"),
    ("transports.kafka_transactions", "transports.memory_transactions"),
    ("history",),
    ("endpoints",),
    ("config",),
    ("assembly",),
    ("peers.base", "tuning"),
    ("peers.river", "peers.sklearn", "peers.vowpal"),
    ("peers",),
    ("checks", "demo", "produce", "generate", "snapshot_sums", "export"),
    ("cli.shared", "cli.tables"),
    ("cli.stream", "cli.models", "cli.judging", "cli.snapshots"),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

MATHEMATICS = {
    "alphabet",
    "whole",
    "stop_words",
    "tokens",
    "smoothing",
    "forgetting",
    "fading",
    "inverse",
    "bins",
    "blocks",
    "posterior",
    "count_sections",
    "counts",
    "moments",
    "scatter",
    "scatter_block",
    "bin_counts",
    "occurrences",
    "field_totals",
    "event_models.multivariate",
    "event_models.binned",
    "event_models",
    "event_models.own",
    "event_models.multinomial",
    "event_models.bernoulli",
    "event_models.categorical",
    "event_models.gaussian",
    "view",
    "head",
    "reading",
    "explanation",
    "twins",
    "state",
    "scorer",
    "sums",
    "linear",
    "telling",
    "sampling",
    "learner",
    "naive_bayes",
    "classifiers",
    "classifiers.frames",
    "classifiers.estimator",
    "classifiers.words",
    "classifiers.fields",
    "classifiers.mixed",
}
STREAM = {
    "record",
    "message",
    "score",
    "offsets",
    "snapshot",
    "snapshots",
    "snapshot_writer",
    "protocols",
    "engine",
    "loop",
    "processing",
    "delivery",
    "guard",
    "supervision",
    "dead_letters",
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
