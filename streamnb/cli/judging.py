"""The work of the command `evaluate`: evaluate one model on a file, or compare several on the same file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import orjson

from streamnb.base import Label
from streamnb.cli.history import History, batches_of, model_and_history
from streamnb.cli.options import warn_of_refused, watched
from streamnb.cli.peers import check_names, peer
from streamnb.cli.tables import print_comparison, print_evaluation
from streamnb.cli.tuning import beside
from streamnb.config import (
    Settings,
    build_decoder,
    build_drift_watch,
    load_settings,
)
from streamnb.errors import SettingsError
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
from streamnb.storage import check_directory, files, place_of


class Judgement(NamedTuple):
    """The options of an evaluation, the same for every model.

    Parameters
    ----------
    window : int
        Size of the sliding window, in judged messages.
    warm_up : int
        Number of first messages that the calibration error leaves out.
    seed : int
        Random seed of the bootstrap intervals.
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
    """Evaluate a model on a file, alone or compared with others, and print or plot the figures.

    Parameters
    ----------
    settings : Settings
    name : str
        The name of the configuration file, which names the model in a comparison.
    data : str
        Path of the JSON lines; ``-`` is standard input.
    limit : int or None
        Read at most this many lines.
    judgement : Judgement
    labels : callable
        Returns a new `Feedback`; called once per model.
    compare : sequence of str
        Further models: configuration files and names of peers.
    plot : Path or None
        Where to write the HTML report; for one model only.
    json : bool
        Print JSON instead of tables.

    Raises
    ------
    StreamnbError
        The file cannot be read, a model cannot be built, or the report cannot be written.
    """
    model, history = model_and_history(settings, data, limit)
    check_names(name for name in compare if not name.strip().endswith(".toml"))
    if compare:
        contenders = [Contender(name, model, judgement.begin(settings))]
        contenders += _contenders(compare, settings, judgement, data, limit)
        _compare(contenders, history, labels, judgement.seed, json=json)
        return
    if plot:
        place = place_of(data, 0)
        if place is not None and place == place_of(str(plot), 1):
            raise SettingsError(f"--plot {plot} would overwrite the input.", "Name another file.")
        check_directory(plot)
        check_plotly()
    judged, course = judgement.begin(settings), Course()
    steps = evaluate(model, batches_of(history, 100 if plot else 1000), labels(), judged)
    for _ in watched(steps, "evaluating", history):
        if plot:
            course.note(judged, model.classes_, _vocabulary(model))
    warn_of_refused(history)
    history.check_labelled(judged.n, "judge")
    figures = judged.figures(model.classes_, intervals=True, seed=judgement.seed)
    if plot:
        title = f"{Path(data).name}, {name}"
        tokens = most_informative_tokens(model.state)
        files.write_text(plot, render_report(title, course, figures, judged.outcomes(), tokens))
    if json:
        extra = {"vocabulary": _vocabulary(model), "refused": history.refused}
        print(orjson.dumps(asdict(figures) | extra, default=list).decode())
        return
    print_evaluation(figures, _vocabulary(model), history.refused)


def _vocabulary(model: NaiveBayes) -> int:
    return sum(len(model.state.counts[view].rows) for view in model.state.counts)


def _contenders(
    names: Sequence[str], settings: Settings, judgement: Judgement, data: str, limit: int | None
) -> Iterator[Contender]:
    """Yield the models named by `--compare`: configurations for the same messages, and peers."""
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
    """Return the classes, which the peers must know in advance: the declared ones, or those of the file."""
    if settings.model.classes:
        return [*settings.model.classes]
    if data == "-":
        raise SettingsError(
            "The compared models must know all classes in advance, and standard input cannot be read twice "
            "to find them.",
            'List the classes, for example --set \'model.classes=["ham", "spam"]\', or pass a file.',
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
    history.check_labelled(contenders[0].judgement.n, "judge")
    rows = [(one.name, *row) for one, row in zip(contenders, beside_the_first(contenders, seed), strict=True)]
    if json:
        found = [
            {"model": name, **asdict(figures), "difference": apart and apart._asdict()}
            for name, figures, apart in rows
        ]
        print(orjson.dumps(found, default=list).decode())
        return
    print_comparison(rows)
