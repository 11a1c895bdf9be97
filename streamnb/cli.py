"""The command line: one command a job.

What an operator can cause is one sentence and a hint, never a traceback.

Exit codes: 0 done, 2 settings, 65 bad data, 69 broker unreachable, 74 storage, 75 stopped past its deadline.
The file is long because every command stands in it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import orjson
import typer

from streamnb import __version__, files
from streamnb.errors import DataError, SettingsError, SnapshotError, StreamnbError

if TYPE_CHECKING:
    from streamnb.history import History

T = TypeVar("T")

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)
snapshot_app = typer.Typer(no_args_is_help=True, help="Look into snapshots.")
app.add_typer(snapshot_app, name="snapshot")

ConfigArgument = Annotated[Path, typer.Argument(help="A TOML file; configs/ has examples.")]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="A TOML file; configs/ has examples.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Change a setting; repeatable.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SnapshotArgument = Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="A snapshot file.")]


def main() -> NoReturn:
    """Run the command line and exit."""
    try:
        app()
    except StreamnbError as error:
        if isinstance(error.__cause__, BrokenPipeError):  # whoever read our output has had enough
            files.silence_stdout()
            sys.exit(0)
        print(f"streamnb: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        files.silence_stdout()
        sys.exit(0)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Score and learn from message streams in real time with naive Bayes."""
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def run(
    config: ConfigArgument,
    begin_from: Annotated[
        Path | None,
        typer.Option("--from", metavar="SNAPSHOT", help="Begin with what a snapshot has learned."),
    ] = None,
    changes: SetOption = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the ends that the partitions have now.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log the Kafka client's warnings too.")] = False,
) -> None:
    """Run the engine: records in, scores out, until SIGTERM or Ctrl-C (the batch in hand is finished)."""
    from streamnb import _kernel, assembly
    from streamnb.config import load
    from streamnb.metrics import Metrics
    from streamnb.stopping import StopOnSignals

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("kafka").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    if not _kernel.compiled:
        logging.getLogger("streamnb").warning("plain Python, about fifty times slower: %s", _kernel.reason)
    settings = load(config, changes or ())
    begin = assembly.snapshot_at(begin_from) if begin_from is not None else None
    metrics = Metrics()
    metrics.serve(settings.metrics)
    engine = assembly.engine(settings, metrics=metrics, until_end=until_end)
    with StopOnSignals(engine.stop, settings.engine.stop_deadline_s):  # closing waits for the disk, too
        try:
            summary = engine.run(begin)
        finally:
            engine.close()
    logging.getLogger("streamnb").info(
        "stopped after %d records: %d scored, %d learned, %d dead letters in %.1f s; digest %s",
        summary.records,
        summary.scored,
        summary.learned,
        summary.dead_letters,
        summary.seconds,
        summary.digest["all"],
    )


@app.command()
def demo(
    messages: Annotated[int | None, typer.Option(help="Stop after this many; without it, at Ctrl-C.")] = None,
    json: JsonOption = False,
    rate: Annotated[float | None, typer.Option(help="Messages a second; 0 for as many as can be.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another mailbox.")] = 0,
    dataset: Annotated[
        str | None, typer.Option(help="sms or trec07: river's data sets, where there is a network.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Only print the messages, as JSON lines for the other commands.")
    ] = False,
) -> None:
    """Run the engine on a broker of its own, over a generated mailbox: live scores, no set-up."""
    if lines:
        _print_mail(seed, messages)
        return
    from streamnb.demo import Demo
    from streamnb.stopping import StopOnSignals

    stage = Demo(messages=messages, seed=seed, rate=rate, dataset=dataset, quiet=json)
    with stage, StopOnSignals(stage.stop, 20.0):
        summary = stage.run()
    if json:
        print(orjson.dumps(summary).decode())


@app.command()
def learn(
    file: Annotated[str, typer.Argument(help="JSON lines; .gz is unpacked, - is standard input.")],
    config: ConfigOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="SNAPSHOT", help="The file to write.")],
    changes: SetOption = None,
) -> None:
    """Learn a file's labels and write a snapshot that `run --from` begins with."""
    from streamnb import assembly, snapshots
    from streamnb.config import load
    from streamnb.history import History

    settings = load(config, changes or ())
    model, history = assembly.model(settings), History(file, assembly.decoder(settings))
    for _, messages in _watched(history.batches(), "learning"):
        model.step(messages.batch, score=False)
    _warn_of_refused(history)
    snapshot = assembly.snapshot_of(settings, model)
    size, digest = snapshots.write(output, snapshot), snapshot.digest["all"]
    print(f"{output}: {model.learned} messages, {len(model.classes)} classes, {size} bytes, digest {digest}")


@app.command()
def evaluate(
    data: Annotated[str, typer.Argument(help="JSON lines; .gz is unpacked, - is standard input.")],
    config: ConfigOption,
    json: JsonOption = False,
    limit: Annotated[int | None, typer.Option(help="Messages to read at most.", min=1)] = None,
    changes: SetOption = None,
) -> None:
    """Test, then learn, message by message, and print what the scores were worth."""
    from streamnb import assembly
    from streamnb.config import load
    from streamnb.evaluation import Prequential
    from streamnb.evaluation import evaluate as judged
    from streamnb.history import History

    settings = load(config, changes or ())
    model, history = assembly.model(settings), History(data, assembly.decoder(settings), limit)
    judgement = Prequential()
    for step in _watched(judged(model, (m.batch for _, m in history.batches())), "evaluating"):
        judgement = step[0]
    _warn_of_refused(history)
    vocabulary = sum(len(model.counts[view].rows) for view in model.counts)
    figures = asdict(judgement.figures(model.classes)) | {
        "vocabulary": vocabulary,
        "refused": history.refused,
    }
    if json:
        print(orjson.dumps(figures).decode())
        return
    for name, value in figures.items():
        print(f"{name:>16}  {_readable(value)}")


@app.command()
def score(
    snapshot: SnapshotArgument,
    file: Annotated[str, typer.Argument(help="JSON lines; .gz is unpacked, - is standard input.")] = "-",
) -> None:
    """Score JSON lines by a snapshot, one line out for each message in; nothing is learned."""
    from streamnb import assembly
    from streamnb.history import History
    from streamnb.score import encode

    settings, model = assembly.restored(assembly.snapshot_at(snapshot))
    history = History(file, assembly.decoder(settings))
    out = sys.stdout.buffer
    for records, messages in history.batches():
        scores = encode(
            model.step(messages.batch, learn=False),
            ids=messages.ids,
            model=settings.model.name,
            partition=records.partition,
            offsets=[records.offsets[row] for row in messages.rows],
        )
        out.writelines(score + b"\n" for score in scores)
        out.flush()
    if history.refused:
        raise DataError(
            f"{history.refused} of {history.read} lines were no messages. {history.first_refusal}"
        )


@app.command()
def explain(
    snapshot: SnapshotArgument,
    text: Annotated[str, typer.Argument(help="A message's text.")],
    top: Annotated[int, typer.Option(help="Tokens to name.", min=1)] = 10,
) -> None:
    """Say why a snapshot's model scores a text as it does; the parts add up to the difference."""
    from streamnb import assembly

    settings, model = assembly.restored(assembly.snapshot_at(snapshot))
    x = dict.fromkeys(settings.message.text[:1], text)
    explanation = model.explain_one(x)
    if explanation is None:
        raise SnapshotError(
            f"{snapshot} has learned fewer than two classes.", "There is nothing to tell apart."
        )
    for label, p in sorted(model.predict_proba_one(x).items(), key=lambda item: -item[1]):
        print(f"{p:8.4f}  {label}")
    first, second = explanation.classes
    print(f"\n{first} against {second}: {explanation.total:+.4f}")
    print(f"{explanation.start:+9.4f}  before reading")
    for name, value in explanation.others.items():
        print(f"{value:+9.4f}  {name}")
    for view, token, value in explanation.tokens[:top]:
        print(f"{value:+9.4f}  {view}: {token!r}")
    if len(explanation.tokens) > top:
        rest = sum(part.value for part in explanation.tokens[top:])
        print(f"{rest:+9.4f}  {len(explanation.tokens) - top} other tokens")


@app.command()
def generate(
    snapshot: SnapshotArgument,
    n: Annotated[int, typer.Option("--messages", "-n", help="How many.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed, the same messages.", min=0)] = 0,
) -> None:
    """Draw labelled messages from a snapshot's model, one JSON line each."""
    from streamnb import assembly, snapshots
    from streamnb.generate import lines

    settings, model = assembly.restored(snapshots.read(snapshot))
    for line in lines(settings, model, n, seed):
        sys.stdout.buffer.write(line + b"\n")


@app.command()
def produce(
    file: Annotated[str, typer.Argument(help="JSON lines; .gz is unpacked, - is standard input.")],
    topic: Annotated[str, typer.Option(help="Where to.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="For its table [kafka].")] = None,
    servers: Annotated[str | None, typer.Option("--bootstrap-servers", help="In place of a config.")] = None,
    create: Annotated[
        int,
        typer.Option(metavar="PARTITIONS", help="Make the topic, with so many partitions, if it is missing."),
    ] = 0,
    changes: SetOption = None,
) -> None:
    """Send lines into a Kafka topic, line n to partition n modulo how many there are."""
    from streamnb.config import client, load
    from streamnb.produce import produce as send

    if (config is None) == (servers is None):
        raise SettingsError("Which broker?", "Give either --config or --bootstrap-servers.")
    brokers = client(load(config, changes or ())) if config is not None else {"bootstrap_servers": servers}
    sent, partitions = send(file, topic, brokers, create)
    print(f"{sent} records to {topic}, {partitions} partition{'s' if partitions > 1 else ''}")


@app.command()
def check(
    config: ConfigArgument,
    changes: SetOption = None,
    create: Annotated[
        int,
        typer.Option(metavar="PARTITIONS", help="Make the topics that are missing, with so many partitions."),
    ] = 0,
) -> None:
    """Try settings, model, snapshot directory, broker and topics: ready, or why not."""
    from streamnb.checks import checks
    from streamnb.config import load

    settings = load(config, changes or ())
    failure: StreamnbError | None = None
    for name, attempt in checks(settings, create):
        try:
            print(f"ok    {name}: {attempt()}")
        except StreamnbError as error:
            print(f"FAIL  {name}: {error}")
            failure = failure or error
    if failure is not None:
        raise typer.Exit(failure.exit_code)
    print("ready")


@snapshot_app.command("inspect")
def snapshot_inspect(snapshot: SnapshotArgument, json: JsonOption = False) -> None:
    """Show what a snapshot holds; every byte of it is checked on the way."""
    from streamnb import snapshots
    from streamnb.offsets import to_rows
    from streamnb.snapshot import fingerprint

    held = snapshots.read(snapshot)
    facts: dict[str, object] = {
        "sequence": held.sequence,
        "written_ms": held.written_ms,
        "streamnb": held.streamnb,
        "learned": held.values.get("learned"),
        "classes": held.values.get("classes"),
        "digest": held.digest,
        "statistics": fingerprint(held.statistics),
        "reading": fingerprint(held.reading),
        "source": held.source,
        "accounts": to_rows(held.accounts),
        "lineage": held.lineage,
        "sections": {name: [*array.shape] for name, array in held.sections.items()},
    }
    if json:
        print(orjson.dumps(facts).decode())
        return
    for name, value in facts.items():
        print(f"{name:>12}  {_readable(value)}")


@snapshot_app.command("verify")
def snapshot_verify(snapshot: SnapshotArgument) -> None:
    """Check every byte, restore the state, and compute its digest again."""
    from streamnb import assembly

    print(f"{snapshot}: whole; digest {assembly.verify(snapshot)}")


def _print_mail(seed: int, n: int | None) -> None:
    from streamnb.demo import message_of, stream

    for mail in stream(None, seed, n):
        sys.stdout.buffer.write(orjson.dumps(message_of(mail)) + b"\n")


def _watched(steps: Iterable[T], what: str) -> Iterator[T]:
    """A spinner with a count on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield from steps
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(steps, f"{what} (thousands)", console=Console(stderr=True), transient=True)


def _warn_of_refused(history: History) -> None:
    if history.refused:
        print(
            f"streamnb: left out {history.refused} of {history.read} lines. {history.first_refusal}",
            file=sys.stderr,
        )


def _readable(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
