"""Print figures as tables for a person: as wide as the terminal, and 140 characters wide in a pipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamnb.cli.options import visible
from streamnb.evaluation import Difference, Evaluation, Interval

if TYPE_CHECKING:
    from streamnb.cli.tuning import Tuned

PIPE_WIDTH = 140
CLASSES_MAX = 20
"""With more classes, only the most frequent ones are shown."""
CHANGES_MAX = 20
"""With more changes, only the first ones are shown."""


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    table = Table(
        *map(visible, header), box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*map(visible, row))
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=PIPE_WIDTH)
    console.print(table)


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure with a fixed number of digits, or a dash for ``None`` and NaN.

    Examples
    --------
    >>> number(0.98765), number(None), number(1.9, 3)
    ('0.9877', '-', '1.900')
    """
    return "-" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def print_evaluation(figures: Evaluation, vocabulary: int, refused: int) -> None:
    """Print an evaluation: the figures over all messages and the window, by class, and by posterior."""
    window, between = figures.window, figures.intervals
    rows = [
        ("accuracy", figures.accuracy, window.accuracy, between.get("accuracy")),
        ("log loss, nats", figures.log_loss, window.log_loss, between.get("log_loss")),
        ("1-ROCA %", figures.roca_loss_pct, figures.window_roca_loss_pct, between.get("roca_loss_pct")),
        ("lam %", figures.lam_pct, window.lam_pct, between.get("lam_pct")),
        ("Brier score", figures.brier, window.brier, None),
        (f"calibration error, after {figures.warm_up}", figures.ece, window.ece, None),
    ]
    print_table(
        ["", "all", "95 % between", f"last {window.n:,}"],
        [[name, number(whole), _span(interval), number(newest)] for name, whole, newest, interval in rows],
    )
    if len(figures.classes) <= CLASSES_MAX:
        shown = figures.classes
    else:
        counts = {name: sum(row.values()) for name, row in figures.confusion.items()}
        shown = sorted(figures.classes, key=lambda name: -counts[name])[:CLASSES_MAX]
    header = [
        "class",
        "recall",
        "precision",
        *(f"taken for {name}" for name in shown[: 6 * (len(shown) < 7)]),
    ]
    print_table(
        header,
        [
            [
                name,
                number(figures.recall[name]),
                number(figures.precision[name]),
                *(f"{figures.confusion[name][other]:,}" for other in shown[: len(header) - 3]),
            ]
            for name in shown
        ],
    )
    print_table(
        ["said: mean posterior", "true: accuracy", "messages"],
        [[number(part.p, 3), number(part.accuracy, 3), f"{part.n:,}"] for part in figures.reliability],
    )
    _print_changes(figures)
    print(
        f"{figures.n:,} labelled messages, {figures.new_class} of a class not learned before; "
        f"{refused} lines refused; vocabulary {vocabulary:,}; {number(figures.messages_per_s, 0)} messages/s"
    )


def _print_changes(figures: Evaluation) -> None:
    """Print the detected changes of the error rate, if there was a drift detector."""
    if figures.changes is None:
        return
    if not figures.changes:
        print("No drift was seen.")
        return
    print_table(
        ["drift seen by", "at message", "error rate before", "error rate now"],
        [
            [one.detector, f"{one.message:,}", number(one.before, 3), number(one.recent, 3)]
            for one in figures.changes[:CHANGES_MAX]
        ],
    )
    if len(figures.changes) > CHANGES_MAX:
        print(f"Drift was seen {len(figures.changes):,} times; the table shows the first {CHANGES_MAX}.")


def print_comparison(rows: Sequence[tuple[str, Evaluation, Difference | None]]) -> None:
    """Print one row per model; McNemar's p and the difference of the log loss are against the first."""
    print_table(
        [
            "model",
            "log loss",
            "1-ROCA %",
            "calibration error",
            "accuracy",
            "McNemar p",
            "log loss - first",
            "messages/s",
        ],
        [
            [
                name,
                number(figures.log_loss),
                number(figures.roca_loss_pct, 3),
                number(figures.ece),
                number(figures.accuracy),
                "" if apart is None else f"{apart.mcnemar_p:.2g}",
                ""
                if apart is None
                else f"{apart.log_loss:+.4f} ({apart.interval.low:+.4f} to {apart.interval.high:+.4f})",
                number(figures.messages_per_s, 0),
            ]
            for name, figures, apart in rows
        ],
    )
    first = rows[0][1]
    print(
        f"{first.n:,} labelled messages, {first.new_class} of a class not learned before; "
        f"calibration error without the first {first.warm_up}; McNemar p and the log loss difference, "
        f"with its 95 % interval, are against {rows[0][0]}"
    )


def print_tuning(found: Tuned, config: str, bytes_max: int | None) -> None:
    """Print the grid on the first part, the best and the given settings on the rest, and what to change."""
    ordered = sorted(
        found.first, key=lambda one: math.inf if math.isnan(one[1].log_loss) else one[1].log_loss
    )
    header = ["settings", "log loss", "1-ROCA %", "accuracy"]
    first = [[one.name, *_worth(figures)] for one, figures in ordered]
    print_table(header, first, f"first {found.first[0][1].n:,} messages")
    rest = [["as given", *_worth(found.given)]]
    if found.apart is not None:
        rest.append([f"best: {found.best.name}", *_worth(found.rest)])
    print_table(header, rest, f"the other {found.given.n:,} messages")
    limit = "" if bytes_max is None else f", each with at most {bytes_max >> 20:,} MiB of counts"
    print(f"Ran {len(found.first)} models at once{limit}.")
    if found.apart is None:
        print(f"Nothing was better than {config} as it is.")
        return
    apart = found.apart
    low, high = apart.interval
    print(
        f"On the rest, the best settings change the log loss by {apart.log_loss:+.4f} (95 % between "
        f"{low:+.4f} and {high:+.4f}); accuracy: McNemar p = {apart.mcnemar_p:.2g}."
    )
    if apart.within_noise:
        print(f"That is within noise: leave {config} as it is, or try again with more messages.")
        return
    if apart.log_loss > 0:
        print(f"The settings that were best at first are worse on the rest. Leave {config} as it is.")
        return
    print(
        f"That is a significant improvement. Pass each line below with --set, or put it above the first "
        f"table of {config} and remove the settings that it replaces:\n"
    )
    print("\n".join(found.best.changes))


def _worth(figures: Evaluation) -> list[str]:
    return [number(figures.log_loss), number(figures.roca_loss_pct, 3), number(figures.accuracy)]


def _span(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.low:.4f} and {interval.high:.4f}"
