"""The work of the command `tune`: choose settings from a grid on the first part of a stream.

The best candidate and the given settings are then compared on the rest. All candidates run side by side in
one pass (the command reads the file a first time only to count its messages). Each candidate has its own
model, of at most `model.bytes_max` bytes. After the first part, only the models of the best and of the
given settings are kept.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import orjson

from streamnb.base import Batch
from streamnb.config import (
    Settings,
    build_decoder,
    build_model,
    check_lines,
    load_settings,
    without_fixed,
)
from streamnb.errors import DataError, SettingsError
from streamnb.evaluation import Contender, Difference, Evaluation, Prequential, beside_the_first, compare
from streamnb.naive_bayes import (
    CharacterGrams,
    Ends,
    Laplace,
    Multinomial,
    NaiveBayes,
    View,
    WordPairs,
    Words,
)

CANDIDATES_MAX = 64
ALPHAS = (0.03, 0.1, 0.3, 1.0)
HALF_LIVES = (1_000, 4_000)
GIVEN = "as given"


@dataclass(slots=True)
class Candidate:
    """One combination of a grid's values.

    Parameters
    ----------
    name : str
        Names the candidate in tables.
    changes : tuple of str
        ``table.key=value``, each a line of TOML that overrides the given configuration.
    """

    name: str
    changes: tuple[str, ...]


@dataclass(slots=True)
class Tuned:
    """The result of tuning.

    Parameters
    ----------
    first : list of (Candidate, Evaluation)
        The figures on the first part: the given settings, then the candidates in the order of the grid.
    best : Candidate
        The candidate with the lowest log loss on the first part.
    given, rest : Evaluation
        The figures on the rest, of the given settings and of the best candidate.
    apart : Difference or None
        The best candidate's log loss minus that of the given settings, on the rest; ``None`` if the given
        settings are the best.
    """

    first: list[tuple[Candidate, Evaluation]]
    best: Candidate
    given: Evaluation
    rest: Evaluation
    apart: Difference | None


def candidates(settings: Settings, grid: Sequence[str]) -> list[Candidate]:
    """Return one candidate per combination of a grid's values.

    Parameters
    ----------
    settings : Settings
        The given settings.
    grid : sequence of str
        Lines ``table.key=value,value``. If empty, the default grid: four sets of views of text, each with
        four smoothings, and the given views with two half-lives.

    Raises
    ------
    SettingsError
        A line of the grid has another form, or there are more than 64 combinations.

    Examples
    --------
    >>> [one.changes for one in candidates(Settings(), ["tokens.token_length_min=1,2"])]
    [('tokens.token_length_min=1',), ('tokens.token_length_min=2',)]
    """
    axes = [_axis(line) for line in grid] or [_default_axis(settings)]
    found = []
    for combination in itertools.product(*axes):
        names, changes = zip(*combination, strict=True)
        found.append(Candidate(", ".join(names), changes))
    if len(found) > CANDIDATES_MAX:
        raise SettingsError(
            f"The grid has {len(found)} combinations, more than {CANDIDATES_MAX}.",
            "Try fewer values at once.",
        )
    return found


def beside(other: Settings, settings: Settings, name: str) -> NaiveBayes:
    """Build a model that can be compared with the model of `settings` on the same decoded messages.

    Parameters
    ----------
    other : Settings
        The settings of the model to build.
    settings : Settings
        The settings that the lines are decoded with.
    name : str
        Names `other` in errors.

    Raises
    ------
    SettingsError
        `other` would decode the lines differently, or forgets by timestamps, which lines do not have.
    """
    if other.message != settings.message:
        raise SettingsError(
            f"The `[message]` of {name} differs from that of the configuration it is compared with.",
            "Give both the same `[message]`.",
        )
    check_lines(other)
    build_decoder(other)  # raises if a view reads a field that is not decoded
    return build_model(other)


def tune(
    path: Path, changes: Sequence[str], grid: Sequence[Candidate], batches: Iterable[Batch], n_first: int
) -> Iterator[Tuned | None]:
    """Evaluate every candidate on the first messages, then the best and the given settings on the rest.

    Parameters
    ----------
    path : Path
        The given configuration.
    changes : sequence of str
        ``table.key=value`` overrides, for the given settings and every candidate.
    grid : sequence of Candidate
    batches : iterable of Batch
        Iterated once.
    n_first : int
        Number of messages in the first part.

    Yields
    ------
    Tuned or None
        ``None`` after each batch, for progress; the result at the end.

    Raises
    ------
    DataError
        The first part has no message that can be judged, or the rest has no labelled message.
    SettingsError
        A candidate's settings are not valid.
    """
    all_of_them, settings = [Candidate(GIVEN, ()), *grid], load_settings(path, changes)
    contenders = []
    for one in all_of_them:
        model = beside(load_settings(path, [*changes, *one.changes]), settings, one.name)
        contenders.append(Contender(one.name, model, Prequential(warm_up=0)))
    first, rest = _divided(batches, n_first)
    for _ in compare(contenders, first):
        yield None
    figures = [figures for figures, _ in beside_the_first(contenders[:1])]
    figures += [one.judgement.figures(one.model.classes_) for one in contenders[1:]]
    losses = [math.inf if math.isnan(one.log_loss) else one.log_loss for one in figures]
    if min(losses) == math.inf:
        raise DataError(
            "In the first part, no labelled message has a class that was learned before it.",
            "Pass more data, or a larger --part.",
        )
    best = losses.index(min(losses))  # the given settings win a tie: they are first
    two = [Contender(GIVEN, contenders[0].model, Prequential(warm_up=0))]
    if best:
        two.append(Contender("best", contenders[best].model, Prequential(warm_up=0)))
    del contenders
    for _ in compare(two, rest):
        yield None
    if not two[0].judgement.n:
        raise DataError(
            "No labelled message is left after the first part.", "Pass more data, or a smaller --part."
        )
    judged = beside_the_first(two)
    yield Tuned(list(zip(all_of_them, figures, strict=True)), all_of_them[best], judged[0][0], *judged[-1])


def _divided(batches: Iterable[Batch], n_first: int) -> tuple[Iterator[Batch], Iterator[Batch]]:
    """Return iterators over the first messages and over the rest; exhaust the first before the second."""
    source, left = iter(batches), n_first
    held: list[Batch] = []

    def first() -> Iterator[Batch]:
        nonlocal left
        for batch in source:
            if len(batch) > left:
                if left:
                    yield batch.rows(slice(left))
                held.append(batch.rows(slice(left, None)))
                return
            left -= len(batch)
            yield batch

    def rest() -> Iterator[Batch]:
        yield from held
        yield from source

    return first(), rest()


def _axis(line: str) -> list[tuple[str, str]]:
    """Return the changes ``key=a`` and ``key=b`` of a line ``key=a,b``, each with its name."""
    key, equals, text = line.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise SettingsError(
            f"--grid {line}: expected table.key=value,value.",
            "An example is --grid tokens.token_length_min=1,2.",
        )
    try:
        values = [toml(value) for value in tomllib.loads(f"values = [{text}]")["values"]]
    except (ValueError, RecursionError):
        values = [value.strip() for value in text.split(",")]
    return [(f"{key.strip()}={value}",) * 2 for value in values]


def _default_axis(settings: Settings) -> list[tuple[str, str]]:
    """Return the default grid as one axis: views and smoothing vary together, as both are in `[[views]]`."""
    others = [view for view in settings.views if view.reads != "text"]
    fields = next((view.reader.named_fields for view in settings.views if view.reads == "text"), ())
    if not fields:
        raise SettingsError(
            "No view reads text, so there is no default grid.",
            "Pass what to try: --grid table.key=value,value.",
        )
    words, pairs = View("words", Words(fields=fields)), View("pairs", WordPairs(fields=fields))
    characters = View("characters", CharacterGrams(fields=fields))
    ends = View("ends", Ends(fields=fields))
    axis = []
    for views in ([words], [words, pairs], [words, pairs, ends], [words, pairs, characters, ends]):
        for alpha in ALPHAS:
            tables = [_smoothed(view, alpha * (0.3 if view is pairs else 1.0)) for view in views]
            tables += [msgspec.to_builtins(view) for view in others]
            name = f"{' + '.join(view.name for view in views)}, alpha {alpha}"
            axis.append((name, f"views={toml(without_fixed({'views': tables})['views'])}"))
    if settings.forgetting.half_life_s is None:
        names = [f"forgetting.half_life_messages={messages}" for messages in HALF_LIVES]
        axis += zip(names, names, strict=True)
    return axis


def _smoothed(view: View, alpha: float) -> object:
    return msgspec.to_builtins(View(view.name, view.reader, Multinomial(Laplace(round(alpha, 6)))))


def toml(value: object) -> str:
    """Return a value as TOML on one line.

    Examples
    --------
    >>> toml([{"kind": "words", "n": 4, "off": False, "alpha": 0.1}])
    '[{ kind = "words", n = 4, off = false, alpha = 0.1 }]'
    """
    if isinstance(value, Mapping):
        pairs = (f"{key} = {toml(inner)}" for key, inner in value.items() if inner is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return orjson.dumps(value).decode() if isinstance(value, str) else str(value)
