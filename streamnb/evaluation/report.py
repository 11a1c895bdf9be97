"""Render an evaluation as one HTML page with plots; plotly's JavaScript is inlined, so it works offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any

from streamnb.base import Label
from streamnb.errors import SettingsError
from streamnb.evaluation.outcomes import Outcomes
from streamnb.evaluation.prequential import Evaluation, Prequential
from streamnb.evaluation.ranking import roc_curve

HEIGHT = 380
CHANGES_MAX = 100
BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#a0aec0"


@dataclass(slots=True)
class Course:
    """The course of the figures along the stream: `note` appends one point to each list.

    Parameters
    ----------
    n : list of int
        Labelled messages up to each point.
    accuracy, log_loss : list of float
        Over all messages up to the point.
    window_accuracy, window_log_loss : list of float
        Over the sliding window at the point.
    vocabulary : list of int
        Number of tokens that the model knows.
    """

    n: list[int] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)
    window_accuracy: list[float] = field(default_factory=list)
    window_log_loss: list[float] = field(default_factory=list)
    vocabulary: list[int] = field(default_factory=list)

    def note(self, judgement: Prequential, classes: Sequence[Label], vocabulary: int) -> None:
        """Append the current figures as one point."""
        whole, (window, _) = judgement.tally.figures(classes), judgement.window.figures(classes)
        self.n.append(judgement.n)
        self.accuracy.append(whole.accuracy)
        self.log_loss.append(whole.log_loss)
        self.window_accuracy.append(window.accuracy)
        self.window_log_loss.append(window.log_loss)
        self.vocabulary.append(vocabulary)


def render_report(
    title: str,
    course: Course,
    figures: Evaluation,
    outcomes: Outcomes,
    informative: Mapping[str, Sequence[tuple[str, float]]],
) -> str:
    """Return the HTML of the page.

    Parameters
    ----------
    title : str
    course : Course
    figures : Evaluation
    outcomes : Outcomes
        For the ROC curve, which is drawn with two classes.
    informative : mapping of str to list of (str, float)
        The most informative tokens of each class, with the z-score of their log odds.

    Raises
    ------
    SettingsError
        plotly is not installed.
    """
    go = _plotly("plotly.graph_objects")
    drawings = [_learning(go, course, figures), _reliability(go, figures)]
    if figures.roca_loss_pct is not None:
        drawings.append(_roc(go, figures, outcomes))
    if informative:
        drawings.append(_words(go, informative))
    drawings.append(_vocabulary(go, course))
    parts = [
        drawing.to_html(full_html=False, include_plotlyjs=number == 0, default_height=f"{HEIGHT}px")
        for number, drawing in enumerate(drawings)
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>body{font-family:sans-serif;max-width:1100px;margin:2em auto;color:#2d3748}</style></head>"
        f"<body><h1>{escape(title)}</h1><p>{escape(_sentence(figures))}</p>{''.join(parts)}</body></html>\n"
    )


def check_plotly() -> None:
    """Raise unless plotly is installed; call it before a long evaluation, not after.

    Raises
    ------
    SettingsError
        plotly is not installed.
    """
    _plotly("plotly.graph_objects")


def _plotly(module: str) -> Any:  # noqa: ANN401 - plotly has no types
    try:
        return import_module(module)
    except ImportError as error:
        raise SettingsError(
            "The package plotly is not installed, so the report cannot be drawn.",
            "Install it: pip install 'streamnb[plot]'",
        ) from error


def _sentence(figures: Evaluation) -> str:
    return (
        f"{figures.n:,} labelled messages, in order, each scored before it was learned: accuracy "
        f"{figures.accuracy:.4f}, log loss {figures.log_loss:.4f}, calibration error {figures.ece:.4f} "
        f"(without the first {figures.warm_up})."
    )


def _learning(go: Any, course: Course, figures: Evaluation) -> Any:  # noqa: ANN401
    drawing = _plotly("plotly.subplots").make_subplots(1, 2, subplot_titles=("Accuracy", "Log loss, nats"))
    newest = f"last {figures.window.n:,}"
    for column, (whole, window) in enumerate(
        ((course.accuracy, course.window_accuracy), (course.log_loss, course.window_log_loss)), 1
    ):
        for name, values, colour in (("all so far", whole, BLUE), (newest, window, ORANGE)):
            line = go.Scatter(
                x=course.n, y=values, name=name, line_color=colour, showlegend=column == 1, legendgroup=name
            )
            drawing.add_trace(line, 1, column)
    drawing.update_xaxes(title="labelled messages")
    drawing.update_yaxes(range=_span(course.accuracy + course.window_accuracy), col=1)
    drawing.update_yaxes(range=_span(course.log_loss + course.window_log_loss, low=0.0), col=2)
    for change in (figures.changes or ())[:CHANGES_MAX]:
        drawing.add_vline(x=change.labelled, line={"color": GREY, "dash": "dot"}, row="all", col="all")
    return drawing.update_layout(title="Learning" if not figures.changes else "Learning; dotted: drift seen")


def _span(values: Iterable[float], low: float | None = None) -> list[float]:
    """Return an axis range without the lowest and highest 5 %: a course's first points are outliers."""
    ordered = sorted(value for value in values if value == value) or [0.0]  # noqa: PLR0124 - NaN
    bottom, top = ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]
    margin = 0.1 * (top - bottom) or 0.01
    return [bottom - margin if low is None else low, top + margin]


def _reliability(go: Any, figures: Evaluation) -> Any:  # noqa: ANN401
    bins = figures.reliability
    sizes = [f"{part.n:,} messages" for part in bins]
    drawing = go.Figure(
        [
            go.Scatter(x=[0, 1], y=[0, 1], line={"color": GREY, "dash": "dot"}, name="calibrated"),
            go.Scatter(
                x=[part.p for part in bins],
                y=[part.accuracy for part in bins],
                text=sizes,
                mode="lines+markers",
                line_color=BLUE,
                name="observed",
            ),
        ]
    )
    return drawing.update_layout(
        title="Reliability: predicted probability and observed accuracy",
        xaxis={"title": "posterior of the predicted class", "range": [0, 1.02]},
        yaxis={"title": "share predicted correctly", "range": [0, 1.02]},
    )


def _roc(go: Any, figures: Evaluation, outcomes: Outcomes) -> Any:  # noqa: ANN401
    false, true = roc_curve(outcomes.margin, outcomes.truth == 1)
    second = escape(figures.classes[1])
    least = 0.5 / (
        len(outcomes) - int((outcomes.truth == 1).sum())
    )  # in place of 0, which a logarithmic axis cannot show
    drawing = go.Figure(go.Scatter(x=false.clip(least).tolist(), y=true.tolist(), line_color=BLUE))
    return drawing.update_layout(
        title=f"ROC of {second}: {figures.roca_loss_pct:.3f} % of the area lies above",
        xaxis={"title": f"false positive rate: share of the others ranked as {second}", "type": "log"},
        yaxis={"title": f"true positive rate: share of {second} found", "range": [0, 1.01]},
    )


def _words(go: Any, informative: Mapping[str, Sequence[tuple[str, float]]]) -> Any:  # noqa: ANN401
    shown = list(informative)[:6]
    columns = min(len(shown), 3)  # a fourth column would be too narrow for its words
    rows = -(-len(shown) // columns)
    drawing = _plotly("plotly.subplots").make_subplots(
        rows,
        columns,
        subplot_titles=[escape(name) for name in shown],
        horizontal_spacing=0.1,
        vertical_spacing=0.1,
    )
    for number, name in enumerate(shown):
        words = informative[name][::-1]
        bars = go.Bar(
            x=[z for _, z in words],
            y=[escape(word) for word, _ in words],
            orientation="h",
            marker_color=BLUE,
            showlegend=False,
        )
        drawing.add_trace(bars, 1 + number // columns, 1 + number % columns)
    drawing.update_yaxes(type="category", automargin=True, dtick=1)
    return drawing.update_layout(
        height=80 + 400 * rows, title="Most informative words, by their log odds in standard errors"
    )


def _vocabulary(go: Any, course: Course) -> Any:  # noqa: ANN401
    drawing = go.Figure(go.Scatter(x=course.n, y=course.vocabulary, line_color=BLUE))
    return drawing.update_layout(
        title="Vocabulary", xaxis_title="labelled messages", yaxis={"title": "tokens", "rangemode": "tozero"}
    )
