"""Peers, the models that `evaluate --compare` knows: river, scikit-learn, vowpalwabbit, plain naive Bayes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from streamnb.base import Label
from streamnb.cli.peers.river import RiverNB
from streamnb.cli.peers.sklearn import SklearnNB
from streamnb.cli.peers.vowpal import Line, VowpalWabbit, our_tokens, own_words
from streamnb.config import Settings
from streamnb.errors import SettingsError
from streamnb.evaluation import OnlineModel
from streamnb.naive_bayes import Laplace, Multinomial, NaiveBayes, TextReader, View

Maker = Callable[[Settings, Sequence[Label]], OnlineModel]


def plain(settings: Settings, classes: Sequence[Label]) -> NaiveBayes:
    """Return streamnb's multinomial naive Bayes with Laplace 1 on the first text view's tokens."""
    reader = _readers(settings)[0]
    view = View("words", reader, Multinomial(Laplace(1.0), "counts", "smooth"))
    return NaiveBayes([view], head="product", tokenizer=settings.tokens, classes_max=max(256, len(classes)))


def _vowpal(options: str, *, ours: bool = False) -> Maker:
    def make(settings: Settings, classes: Sequence[Label]) -> OnlineModel:
        line: Line = our_tokens(_readers(settings), settings.tokens) if ours else own_words
        return VowpalWabbit(settings.message.text, classes, options, line)

    return make


PEERS: dict[str, Maker] = {
    "mnb": plain,
    "river": lambda settings, classes: RiverNB(settings.message.text, classes),
    "sklearn": lambda settings, classes: SklearnNB(settings.message.text, classes),
    "vw": _vowpal(""),
    "vw-l5": _vowpal("-l 5"),
    "vw-tokens": _vowpal("", ours=True),
    "vw-l5-tokens": _vowpal("-l 5", ours=True),
}
"""The peers by their names in `evaluate --compare`. Names with ``-tokens``, and mnb, read the tokens of the
configuration's views of text; the others split the text with their own tokenizers. Names with ``-l5`` learn
at rate 5."""


def check_names(names: Iterable[str]) -> None:
    """Check that names are those of peers, before a file is read for them; an empty name is none.

    Raises
    ------
    SettingsError
        A name is unknown.
    """
    for name in filter(None, (name.strip() for name in names)):
        if name not in PEERS:
            raise SettingsError(
                f"`{name}` is not a model to compare with.",
                f"Name a .toml file or one of {', '.join(PEERS)}.",
            )


def peer(name: str, settings: Settings, classes: Sequence[Label]) -> OnlineModel:
    """Return a new peer that has learned nothing.

    Parameters
    ----------
    name : str
        One of `PEERS`.
    settings : Settings
        They name the fields that hold text, and define its tokens.
    classes : sequence of Label
        All classes, in the order of their first appearance.

    Raises
    ------
    SettingsError
        The name is unknown, the peer's package is not installed, or no view of the settings reads text.

    Examples
    --------
    >>> from streamnb.base.batch import Batch
    >>> model = peer("mnb", Settings(), ["spam", "ham"])
    >>> model.step(Batch({"text": ["win", "lunch", "win"]}, ["spam", "ham", "spam"])).posterior[2].round(2)
    array([0.67, 0.33])
    """
    check_names([name])
    return PEERS[name](settings, classes)


def _readers(settings: Settings) -> list[TextReader]:
    readers = [view.reader for view in settings.views if isinstance(view.reader, TextReader)]
    if not readers:
        raise SettingsError(
            "The comparison needs a view that reads text.", "Add a view of text to `[[views]]`."
        )
    return readers
