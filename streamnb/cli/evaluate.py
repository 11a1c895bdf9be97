"""`streamnb evaluate`: test, then learn, over a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streamnb.cli.options import (
    ConfigOption,
    JsonOption,
    LimitOption,
    LinesArgument,
    SetOption,
    warn_of_refused,
    watched,
)
from streamnb.cli.tables import print_comparison, print_evaluation
from streamnb.config import load_settings
from streamnb.errors import DataError, SettingsError
from streamnb.evaluation import (
    SHARE,
    TAUGHT,
    Contender,
    Feedback,
    Mode,
    Prequential,
    beside_the_first,
    check_plotly,
    render_report,
)
from streamnb.evaluation import compare as compared

if TYPE_CHECKING:
    from streamnb.base import Label
    from streamnb.cli.history import History
    from streamnb.config import Settings
    from streamnb.naive_bayes import NaiveBayes


def evaluate(
    data: LinesArgument,
    config: ConfigOption,
    json: JsonOption = False,
    limit: LimitOption = None,
    window: Annotated[int, typer.Option(help="Messages of the sliding window.", min=1)] = 1000,
    warm_up: Annotated[
        int, typer.Option(help="Messages that the calibration error leaves out at first.", min=0)
    ] = 500,
    delay: Annotated[int, typer.Option(help="Messages by which every label is late.", min=0)] = 0,
    feedback: Annotated[
        Mode, typer.Option(help="Which labels are learned: all, those of the first, those of some messages.")
    ] = "immediate",
    taught: Annotated[
        int | None, typer.Option(help=f"For delayed: messages with a label.  [default: {TAUGHT}]", min=0)
    ] = None,
    share: Annotated[
        float | None, typer.Option(help=f"For partial: of the labels.  [default: {SHARE}]", min=0.0, max=1.0)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of partial feedback and of the intervals.")] = 0,
    compare: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Models to run beside: .toml files, river, sklearn, mnb, vw[-l5][-tokens].",
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Draw the figures on a page that needs no network."),
    ] = None,
    changes: SetOption = None,
) -> None:
    """Test, then learn, message by message, and print what the scores were worth."""
    from streamnb.cli.history import History, batches_of
    from streamnb.config import build_decoder, build_model, check_lines
    from streamnb.evaluation import Course
    from streamnb.evaluation import evaluate as judged
    from streamnb.naive_bayes import most_informative_tokens
    from streamnb.storage import files

    settings = load_settings(config, changes or ())
    check_lines(settings)
    model, history = build_model(settings), History(data, build_decoder(settings), limit)
    judgements = partial(_judgement, settings, window, warm_up)
    labels = _feedback(feedback, delay, taught, share, seed)
    judgement = judgements()
    if compare:
        if plot:
            raise SettingsError("`--plot` draws one model, and `--compare` runs several.", "Leave one out.")
        first = Contender(config.name, model, judgement)
        others = _contenders(compare.split(","), settings, judgements, data, limit)
        _compare([first, *others], history, labels, seed, json=json)
        return
    course = Course()
    if plot:
        check_plotly()
    steps = judged(model, batches_of(history, 100 if plot else 1000), labels(), judgement)
    for _ in watched(steps, "evaluating", history):
        if plot:
            course.note(judgement, model.classes, _vocabulary(model))
    warn_of_refused(history)
    _check_labelled(judgement, history)
    figures = judgement.figures(model.classes, intervals=True, seed=seed)
    if plot:
        title = f"{Path(data).name}, {config.name}"
        drawn = render_report(title, course, figures, judgement.outcomes(), most_informative_tokens(model))
        files.write_text(plot, drawn)
    vocabulary = _vocabulary(model)
    if json:
        extra = {"vocabulary": vocabulary, "refused": history.refused}
        print(orjson.dumps(asdict(figures) | extra, default=list).decode())
        return
    print_evaluation(figures, vocabulary, history.refused)


def _feedback(
    mode: Mode, delay: int, taught: int | None, share: float | None, seed: int
) -> Callable[[], Feedback]:
    """A new one for each model."""
    for name, value, of in (("taught", taught, "delayed"), ("share", share, "partial")):
        if value is not None and mode != of:
            raise SettingsError(f"`--{name}` is for `--feedback {of}`, and that is not asked for.", "Add it.")
    taught, share = TAUGHT if taught is None else taught, SHARE if share is None else share
    return partial(Feedback, mode, delay=delay, taught=taught, share=share, seed=seed)


def _check_labelled(judgement: Prequential, history: History) -> None:
    if not judgement.n:
        raise DataError(
            f"None of the {history.read} lines of {history.path} has a label, so there is nothing to judge.",
            "`message.label` of the configuration names the field that holds it.",
        )


def _judgement(settings: Settings, window: int, warm_up: int) -> Prequential:
    from streamnb.config import build_drift_watch

    return Prequential(window, warm_up, build_drift_watch(settings))


def _vocabulary(model: NaiveBayes) -> int:
    return sum(len(model.counts[view].rows) for view in model.counts)


def _contenders(
    names: list[str], settings: Settings, judgement: Callable[[], Prequential], data: str, limit: int | None
) -> Iterator[Contender]:
    """The models that are named: configurations for the same messages, and peers."""
    from streamnb.cli.peers import peer
    from streamnb.cli.tuning import beside

    classes: list[Label] | None = None
    for name in filter(None, (name.strip() for name in names)):
        if name.endswith(".toml"):
            yield Contender(Path(name).name, beside(load_settings(Path(name)), settings, name), judgement())
            continue
        if classes is None:
            classes = _classes(settings, data, limit)
        yield Contender(name, peer(name, settings, classes), judgement())


def _classes(settings: Settings, data: str, limit: int | None) -> list[Label]:
    """The classes in order of appearance, which the peers must be told: those declared, or the file's."""
    from streamnb.cli.history import History, batches_of
    from streamnb.config import build_decoder

    if settings.model.classes:
        return [*settings.model.classes]
    if data == "-":
        raise SettingsError(
            "The peers must be told the classes, and standard input cannot be read twice.",
            'Name them: --set \'model.classes=["ham", "spam"]\'.',
        )
    seen: dict[Label, None] = {}
    history = History(data, build_decoder(settings), limit)
    for batch in watched(batches_of(history), "looking for classes", history):
        seen |= dict.fromkeys(label for label in batch.labels if label is not None)
    return list(seen)


def _compare(
    contenders: list[Contender], history: History, labels: Callable[[], Feedback], seed: int, *, json: bool
) -> None:
    from streamnb.cli.history import batches_of

    for _ in watched(compared(contenders, batches_of(history), labels), "comparing", history):
        pass
    warn_of_refused(history)
    _check_labelled(contenders[0].judgement, history)
    rows = [(one.name, *row) for one, row in zip(contenders, beside_the_first(contenders, seed), strict=True)]
    if json:
        found = [
            {"model": name, **asdict(figures), "difference": apart and apart._asdict()}
            for name, figures, apart in rows
        ]
        print(orjson.dumps(found, default=list).decode())
        return
    print_comparison(rows)
