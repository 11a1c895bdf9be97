"""The work of `streamnb evaluate`: one model over a file, or several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import orjson

from streamnb.base import Label
from streamnb.cli.history import History, batches_of
from streamnb.cli.options import warn_of_refused, watched
from streamnb.cli.peers import peer
from streamnb.cli.tables import print_comparison, print_evaluation
from streamnb.cli.tuning import beside
from streamnb.config import (
    Settings,
    build_decoder,
    build_drift_watch,
    build_model,
    check_lines,
    load_settings,
)
from streamnb.errors import DataError, SettingsError
from streamnb.evaluation import (
    Contender,
    Course,
    Feedback,
    Prequential,
    beside_the_first,
    check_plotly,
    compare,
    evaluate,
    render_report,
)
from streamnb.naive_bayes import NaiveBayes, most_informative_tokens
from streamnb.storage import files


class Judgement(NamedTuple):
    """How scores are judged.

    Parameters
    ----------
    window : int
        Messages of the sliding window.
    warm_up : int
        Messages that the calibration error leaves out at first.
    seed : int
        Of the intervals.
    """

    window: int
    warm_up: int
    seed: int

    def begin(self, settings: Settings) -> Prequential:
        """Return an empty judgement for one model."""
        return Prequential(self.window, self.warm_up, build_drift_watch(settings))


def judge(
    settings: Settings,
    name: str,
    data: str,
    *,
    limit: int | None,
    judgement: Judgement,
    labels: Callable[[], Feedback],
    compare: Sequence[str],
    plot: Path | None,
    json: bool,
) -> None:
    """Judge a model over a file, alone or beside others, and print or draw the figures.

    Parameters
    ----------
    settings : Settings
    name : str
        Of the settings' file, which names the model in a comparison.
    data : str
        JSON lines; ``-`` is standard input.
    limit : int or None
        Lines to read at most.
    judgement : Judgement
    labels : callable
        Gives a new `Feedback` for each model.
    compare : sequence of str
        The models beside it: configuration files and peers.
    plot : Path or None
        Where to draw the figures of one model.
    json : bool
        Print one JSON object.

    Raises
    ------
    StreamnbError
        The file, a model or the page cannot be had.
    """
    check_lines(settings)
    model, history = build_model(settings), History(data, build_decoder(settings), limit)
    if compare:
        contenders = [Contender(name, model, judgement.begin(settings))]
        contenders += _contenders(compare, settings, judgement, data, limit)
        _compare(contenders, history, labels, judgement.seed, json=json)
        return
    if plot:
        check_plotly()
    judged, course = judgement.begin(settings), Course()
    steps = evaluate(model, batches_of(history, 100 if plot else 1000), labels(), judged)
    for _ in watched(steps, "evaluating", history):
        if plot:
            course.note(judged, model.classes, _vocabulary(model))
    warn_of_refused(history)
    _check_labelled(judged, history)
    figures = judged.figures(model.classes, intervals=True, seed=judgement.seed)
    if plot:
        title = f"{Path(data).name}, {name}"
        tokens = most_informative_tokens(model)
        files.write_text(plot, render_report(title, course, figures, judged.outcomes(), tokens))
    if json:
        extra = {"vocabulary": _vocabulary(model), "refused": history.refused}
        print(orjson.dumps(asdict(figures) | extra, default=list).decode())
        return
    print_evaluation(figures, _vocabulary(model), history.refused)


def _vocabulary(model: NaiveBayes) -> int:
    return sum(len(model.counts[view].rows) for view in model.counts)


def _check_labelled(judgement: Prequential, history: History) -> None:
    if not judgement.n:
        raise DataError(
            f"None of the {history.read} lines of {history.path} has a label, so there is nothing to judge.",
            "`message.label` of the configuration names the field that holds it.",
        )


def _contenders(
    names: Sequence[str], settings: Settings, judgement: Judgement, data: str, limit: int | None
) -> Iterator[Contender]:
    """The models that are named: configurations for the same messages, and peers."""
    classes: list[Label] | None = None
    for name in filter(None, (name.strip() for name in names)):
        if name.endswith(".toml"):
            yield Contender(
                Path(name).name, beside(load_settings(Path(name)), settings, name), judgement.begin(settings)
            )
            continue
        if classes is None:
            classes = _classes(settings, data, limit)
        yield Contender(name, peer(name, settings, classes), judgement.begin(settings))


def _classes(settings: Settings, data: str, limit: int | None) -> list[Label]:
    """The classes in order of appearance, which the peers must be told: those declared, or the file's."""
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
    for _ in watched(compare(contenders, batches_of(history), labels), "comparing", history):
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
