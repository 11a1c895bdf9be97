"""Choosing settings on a stream: a grid judged on its first part, the best and the given one on the rest.

All candidates pass over the stream at once, which is read once more only to be counted; each holds its own
counts, at most `model.max_tokens` tokens. After the first part all but the best and the given one are let go.
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
    reads_text,
)

CANDIDATES_MAX = 64
ALPHAS = (0.03, 0.1, 0.3, 1.0)
HALF_LIVES = (1_000, 4_000)
GIVEN = "as given"


@dataclass(slots=True)
class Candidate:
    """One way to set a model.

    Parameters
    ----------
    name : str
        For a table.
    changes : tuple of str
        ``table.key=value``, each a line of TOML over the given file.
    """

    name: str
    changes: tuple[str, ...]


@dataclass(slots=True)
class Tuned:
    """What a grid came to.

    Parameters
    ----------
    first : list of (Candidate, Evaluation)
        On the first part; the given settings, then the candidates as they were made.
    best : Candidate
        Of the least log loss there.
    given, rest : Evaluation
        The given settings and the best, on the rest.
    apart : Difference or None
        The best less the given on the rest; ``None`` where the given settings are the best.
    """

    first: list[tuple[Candidate, Evaluation]]
    best: Candidate
    given: Evaluation
    rest: Evaluation
    apart: Difference | None


def candidates(settings: Settings, grid: Sequence[str]) -> list[Candidate]:
    """Every combination of a grid.

    Parameters
    ----------
    settings : Settings
        The given ones.
    grid : sequence of str
        ``table.key=value,value``; without any the default: smoothing of the text's counts and which
        views; and the given ones with a half-life.

    Raises
    ------
    SettingsError
        A line of the grid is no such thing, or there are more than 64 combinations.

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
    """A model to be judged beside that of `settings`, on one reading of a file's lines.

    Parameters
    ----------
    other : Settings
        The model's own.
    settings : Settings
        Those that the lines are read by.
    name : str
        The other's, for errors.

    Raises
    ------
    SettingsError
        It would read other messages, or forgets by timestamps that lines do not have.
    """
    if other.message != settings.message:
        raise SettingsError(
            f"{name} reads other messages than the configuration it is compared with.",
            "Give both the same `[message]`.",
        )
    check_lines(other)
    build_decoder(other)  # refuses a view of a field that is not read
    return build_model(other)


def tune(
    path: Path, changes: Sequence[str], grid: Sequence[Candidate], batches: Iterable[Batch], n_first: int
) -> Iterator[Tuned | None]:
    """Judge every candidate on the first messages, then the best and the given one on the rest.

    Parameters
    ----------
    path : Path
        The given configuration.
    changes : sequence of str
        Over it, for the given settings and every candidate.
    grid : sequence of Candidate
    batches : iterable of Batch
        Read once.
    n_first : int
        Messages of the first part.

    Yields
    ------
    Tuned or None
        ``None`` after each batch; what was found at the end.

    Raises
    ------
    DataError
        No message is left for the rest, or there is none that the first part could be judged by.
    SettingsError
        A candidate's settings cannot be.
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
    figures += [one.judgement.figures(one.model.classes) for one in contenders[1:]]
    losses = [math.inf if math.isnan(one.log_loss) else one.log_loss for one in figures]
    if min(losses) == math.inf:
        raise DataError("Nothing can be judged by the first part.", "Give more data, or a larger --part.")
    best = losses.index(min(losses))  # of equals the given one
    two = [Contender(GIVEN, contenders[0].model, Prequential(warm_up=0))]
    if best:
        two.append(Contender("best", contenders[best].model, Prequential(warm_up=0)))
    del contenders
    for _ in compare(two, rest):
        yield None
    if not two[0].judgement.n:
        raise DataError("No labelled message is left to report on.", "Give more data, or a smaller --part.")
    judged = beside_the_first(two)
    yield Tuned(list(zip(all_of_them, figures, strict=True)), all_of_them[best], judged[0][0], *judged[-1])


def _divided(batches: Iterable[Batch], n_first: int) -> tuple[Iterator[Batch], Iterator[Batch]]:
    """The first messages and the rest, both as batches; the first must be read to its end before the rest."""
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
    """``key=a,b`` as the changes ``key=a`` and ``key=b``, each with its name."""
    key, equals, text = line.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise SettingsError(f"--grid {line!r} is no line of a grid.", "Write --grid table.key=value,value.")
    try:
        values = [toml(value) for value in tomllib.loads(f"values = [{text}]")["values"]]
    except (ValueError, RecursionError):
        values = [value.strip() for value in text.split(",")]
    return [(f"{key.strip()}={value}",) * 2 for value in values]


def _default_axis(settings: Settings) -> list[tuple[str, str]]:
    """Views and smoothing together: both stand in the table of views."""
    others = [view for view in settings.views if not reads_text(view.reader)]
    fields = next((view.reader.fields for view in settings.views if reads_text(view.reader)), ())
    if not fields:
        raise SettingsError(
            "No view reads text, so there is no default grid.", "Say what to try: --grid key=a,b."
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
    model = Multinomial(Laplace(round(alpha, 6)), view.multinomial.weight, view.multinomial.unknown)
    return msgspec.to_builtins(View(view.name, view.reader, model))


def toml(value: object) -> str:
    """A value as TOML writes it on one line.

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
