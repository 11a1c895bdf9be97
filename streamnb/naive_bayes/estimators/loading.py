"""Read a model from a file that `NaiveBayes.save`, ``streamnb learn`` or an engine has written.

Reading runs no code that the file names: the class is one of those listed here, and parameters are checked
against the types of its constructor.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamnb.base import check_unicode, differences
from streamnb.errors import SnapshotError
from streamnb.naive_bayes._kernel import memory
from streamnb.naive_bayes.estimators.fields import CategoricalNB, GaussianDiscriminant, GaussianNB
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.estimators.parameters import typed_parameters
from streamnb.naive_bayes.estimators.saving import ESTIMATOR
from streamnb.naive_bayes.estimators.words import BernoulliNB, ComplementNB, MultinomialNB
from streamnb.naive_bayes.model import plain
from streamnb.storage import read_snapshot

_CLASSES: Mapping[str, type[NaiveBayes]] = {
    each.__name__: each
    for each in (
        NaiveBayes,
        MultinomialNB,
        ComplementNB,
        BernoulliNB,
        CategoricalNB,
        GaussianNB,
        GaussianDiscriminant,
    )
}


def load(path: Path | str) -> NaiveBayes:
    """Return the model in a file that `NaiveBayes.save`, `streamnb learn` or an engine has written.

    Parameters
    ----------
    path : Path or str
        A file; of an engine, one of the snapshots in its directory. Its offsets are left out.

    Returns
    -------
    NaiveBayes
        An instance of the class that was saved, with its parameters; of an engine's snapshot, the model that
        its settings describe. It gives bit for bit the same posteriors and can learn more.

    Raises
    ------
    SnapshotError
        The file is damaged, or was written under settings that this version does not know.
    StorageError
        The file cannot be read.

    Examples
    --------
    >>> import streamnb, tempfile
    >>> model = streamnb.NaiveBayes()
    >>> model.learn_one({"text": "win money"}, "spam")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = model.save(f"{folder}/model.snb")
    ...     again = streamnb.load(f"{folder}/model.snb")
    >>> again.predict_one({"text": "money"})
    'spam'
    """
    snapshot = read_snapshot(Path(path), memory).without_index()
    try:
        model = _built(snapshot.settings)
    except ValueError as error:
        raise SnapshotError(
            f"The settings in {path} do not describe a model: {error}.",
            "Read the file with the version of streamnb that wrote it.",
        ) from error
    statistics = {"model": model.state_settings()}
    check_unicode(snapshot, statistics, str(path))
    changes = differences({"model": snapshot.statistics.get("model")}, statistics)
    if changes:
        raise SnapshotError(
            f"{path} was made with other settings: {'; '.join(changes)}.",
            "Its counts have another meaning here. Read the file with the version of streamnb that wrote it.",
        )
    model.restore(snapshot.values, snapshot.sections)
    return model


def _built(settings: Mapping[str, Any]) -> NaiveBayes:
    """Return the model that the settings of a snapshot describe; it has learned nothing."""
    saved = settings.get(ESTIMATOR)
    if saved is None:
        return NaiveBayes(**plain.parameters(plain.typed(settings)))
    if not isinstance(saved, dict) or not isinstance(saved.get("parameters"), dict):
        raise ValueError(f"the table `{ESTIMATOR}` lacks its class or its parameters")
    made = _CLASSES.get(str(saved.get("class")))
    if made is None:
        raise ValueError(f"{saved.get('class')!r} is not a class of streamnb")
    return made(**typed_parameters(made, saved["parameters"]))
