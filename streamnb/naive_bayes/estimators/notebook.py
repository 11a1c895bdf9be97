"""A model as text and as HTML: its parameters, and what it has learned.

Both only read. They are called by a notebook or a debugger, also on a model whose constructor has failed and
which has no state, so they take what there is instead of raising. The model's lock is held while the state is
read, because another thread may be learning.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Sequence

import msgspec

from streamnb.naive_bayes.model.compiled import why_plain
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.posterior import markup
from streamnb.naive_bayes.statistics.bin_counts import BinCounts
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.naive_bayes.statistics.scatter import Scatter
from streamnb.naive_bayes.statistics.token_counts import TokenCounts

CLASSES_MAX = 20  # rows of the table
VIEWS_MAX = 20
NAMES_MAX = 8  # of a view of numbers
ITEMS_MAX = 6  # of a parameter
LINE_MAX = 110


def text_of(model: object, state: State | None) -> str:
    """Return the call that makes such a model, and a comment on what it has learned.

    Parameters
    ----------
    model : object
        Its parameters are attributes of the same names. Those that differ from their defaults are listed, on
        a line each if they do not fit into one.
    state : State or None
        ``None`` if the constructor failed.
    """
    name, given = type(model).__name__, _given(model)
    call = f"{name}({', '.join(f'{key}={_brief.repr(value)}' for key, value in given.items())})"
    if len(call) > LINE_MAX:
        call = f"{name}(\n" + "".join(f"    {key}={_lines(value)},\n" for key, value in given.items()) + ")"
    return call if state is None else f"{call}  # learned {_learned(state)}"


def html_of(model: object, state: State | None) -> str:
    """Return the parameters, the classes with their shares, and the views, as tables.

    Parameters
    ----------
    model : object
    state : State or None
        ``None`` if the constructor failed.
    """
    title = f"<b>{markup.escaped(type(model).__name__)}</b>"
    if state is None:
        return markup.block(title)
    with state.lock:
        return markup.block(
            f"{title}: learned {markup.escaped(_learned(state))}",
            markup.table(["setting", "value"], _settings(state)),
            _classes(state),
            _views(state),
        )


def _given(model: object) -> dict[str, object]:
    """Return the parameters that differ from their defaults, as they were given."""
    given = {}
    for name, parameter in inspect.signature(type(model).__init__).parameters.items():
        if name in vars(model):
            value, default = vars(model)[name], parameter.default
            is_same = isinstance(value, int | float) and isinstance(default, int | float) and value == default
            if not is_same and _brief.repr(value) != _brief.repr(default):
                given[name] = value
    return given


def _lines(value: object) -> str:
    """Return a parameter's value in one line, or a long sequence in one line per item."""
    text = _brief.repr(value)
    if len(text) <= LINE_MAX or not isinstance(value, list | tuple):
        return text
    items = [_brief.repr(item) for item in value[:ITEMS_MAX]] + ["..."] * (len(value) > ITEMS_MAX)
    return "".join(["[\n", *(f"        {item},\n" for item in items), "    ]"])


def _learned(state: State) -> str:
    with state.lock:
        parts = [_number_of(state.learned, "message"), _number_of(len(state.classes), "class", "classes")]
        if any(view.formulas.counts_tokens for view in state.views):
            parts.append(_number_of(len(state.counts), "token"))
    return ", ".join(parts)


def _settings(state: State) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("head", state.head_kind)]
    if state.head is None:
        rows.append(("prior", _full.repr(state.prior)))
    if state.decay is not None:
        unit = "seconds" if state.decay.by_time else "messages"
        rows.append((f"half-life in {unit}", f"{state.decay.half_life:,g}"))
    if state.max_tokens is not None:
        rows.append(("tokens at most", f"{state.max_tokens:,}"))
    if state.bytes_max is not None:
        rows.append(("bytes of counts at most", f"{state.bytes_max:,}"))
    return [*rows, ("runs", _driver(state))]


def _driver(state: State) -> str:
    if not state.compiled:
        why = why_plain(state.views, state.prior)
        return f"in plain Python; not compiled: {why or 'as the parameter asks'}"
    return "compiled, but explained scores in plain Python" if state.explain else "compiled"


def _classes(state: State) -> str:
    """Return the heaviest classes, with the weight that their messages have now."""
    scale = 1.0 if state.decay is None else state.decay.scale(state.decay.now())
    weights = [count / scale for count in state.class_counts]
    total = sum(weights)
    order = sorted(range(len(weights)), key=lambda c: -weights[c])
    rows = [
        (state.classes[c], f"{weights[c] / total:.1%}" if total else "", f"{weights[c]:,.6g}")
        for c in order[:CLASSES_MAX]
    ]
    return markup.table(["class", "share", "weight of messages"], rows, _more(order, CLASSES_MAX))


def _views(state: State) -> str:
    rows = [
        (view.name, _full.repr(view.reader), _full.repr(view.event_model), _held(state, view))
        for view in state.views[:VIEWS_MAX]
    ]
    heads = ["view", "reader", "event model", "has learned"]
    return markup.table(heads, rows, _more(state.views, VIEWS_MAX))


def _held(state: State, view: View) -> str:
    """Return the size of a view's vocabulary, or the names of its numbers; empty for a user's statistic."""
    statistic: object = state.statistics[view.name]
    names: list[str]
    match statistic:
        case TokenCounts():
            return _number_of(len(state.counts[view.name].rows), "token")
        case NumberBlock():
            names = list(statistic.numbers)
        case Scatter():
            names = statistic.names
        case BinCounts():
            names = list(dict.fromkeys([*statistic.learned, *statistic.counts]))
        case _:
            return ""
    shown = [markup.cut(name) for name in names[:NAMES_MAX]]
    return ", ".join(filter(None, [*shown, _more(names, NAMES_MAX)])) or "no numbers"


def _more(things: Sequence[object], shown: int) -> str:
    return f"and {len(things) - shown:,} more" if len(things) > shown else ""


def _number_of(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


class _Full(reprlib.Repr):
    """A `repr` of bounded length, which does not raise if an object's own one does."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = ITEMS_MAX
        self.maxstring, self.maxother = 60, 300


class _Brief(_Full):
    """A `repr` of bounded length without the settings that have their defaults."""

    def repr_instance(self, x: object, level: int) -> str:
        """Return a struct as the call that makes it, and any other object by its own `repr`."""
        if not isinstance(x, msgspec.Struct):
            return super().repr_instance(x, level)
        if level <= 0:
            return f"{type(x).__name__}(...)"
        names, defaults = x.__struct_fields__, x.__struct_defaults__
        required = len(names) - len(defaults)
        given = [self.repr1(getattr(x, name), level - 1) for name in names[:required]]
        for name, default in zip(names[required:], defaults, strict=True):
            text = self.repr1(getattr(x, name), level - 1)
            if text != self.repr1(default, level - 1):
                given.append(f"{name}={text}")
        return f"{type(x).__name__}({', '.join(given)})"


_full, _brief = _Full(), _Brief()
