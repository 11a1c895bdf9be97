"""A score: what is published of a message. Its identity is the source address, so a repeat is known.

The form is `schemas/score.schema.json`; tests hold what is emitted to it. A batch is encoded column by
column: orjson writes the numbers of many rows at once, and the rows fill a template of what is alike in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from streamnb.base import Flag, Floats, Partition, Scores, twins
from streamnb.wire.abstention import PREDICTED, REASONS, Abstain
from streamnb.wire.field_values import Id
from streamnb.wire.template import Column, Table, filled


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a score carries, and which messages get one published.

    Parameters
    ----------
    emit : {"all", "unlabelled"}
        Whether messages that came with a label are scored in public too.
    raw_posterior : bool
        The product head's posterior over the same counts, beside the calibrated one.
    explanation : int
        How many tokens to explain the score by; 0 for no explanation.
    state : bool
        The offsets learned when the score was computed, partition by partition: enough to compute it again.
    abstain : Abstain
        When no class is named.
    """

    emit: Literal["all", "unlabelled"] = "all"
    raw_posterior: bool = False
    explanation: int = 0
    state: bool = False
    abstain: Abstain = Abstain()

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a negative number of tokens."""
        if self.explanation < 0:
            raise ValueError("`explanation` must not be below 0")


def encode_scores(
    scores: Scores,
    *,
    ids: Sequence[Id | None],
    model: str,
    partition: Partition,
    offsets: Sequence[int],
    states: Sequence[Mapping[str, int]] | None = None,
    abstained: NDArray[np.int64] | None = None,
) -> list[bytes]:
    """Scores as JSON, one object a row.

    Parameters
    ----------
    scores : Scores
    ids : sequence of str, int or None, length n
        ``None``: the source address stands in, ``topic-partition-offset``.
    model : str
        The model's name.
    partition, offsets
        The source addresses, one offset a row.
    states : sequence of mapping of str to int, optional
        Next offset by partition, of what the model had learned at each row.
    abstained : ndarray of int64, shape (n,), optional
        What `Abstain.reasons` says: the rows that name no class, and why.

    Returns
    -------
    list of bytes
        Without newlines. Of equal posteriors the smallest class is the prediction, as in
        `streamnb.base.batch.likeliest`; what no JSON number can say (the log odds of an only class) is null.

    Examples
    --------
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.naive_bayes.model.naive_bayes import NaiveBayes
    >>> scores = NaiveBayes(classes=["ham"]).step(Batch({"text": ["hello"]}, [None]))
    >>> encode_scores(scores, ids=["m-1"], model="spam", partition=Partition("mail", 0), offsets=[7])[0][:51]
    b'{"id":"m-1","prediction":"ham","posterior":{"ham":1'
    """
    if not len(scores):
        return []
    names = scores.classes_as_text()
    of_ids = _lines(
        [
            f"{partition}-{offset}" if given is None else given
            for given, offset in zip(ids, offsets, strict=True)
        ]
    )
    said = [b""] * len(scores)
    for row in np.flatnonzero(scores.flags).tolist():
        said[row] = _flags(int(scores.flags[row]))
    tails: list[list[bytes]] = []
    if abstained is not None:
        tails.append([_WHY[reason] for reason in abstained.tolist()])
    if scores.explanations is not None:
        tails.append([b"" if why is None else b',"explanation":' + _json(why) for why in scores.explanations])
    if states is not None:
        tails.append([b',"state":' + _json(state) for state in states])
    tokens = np.column_stack([scores.known_tokens, scores.unknown_tokens, scores.learned])
    values: list[bytes] = []
    # Classes appear in the middle of a batch: each run of rows that know the same ones has a template.
    changes = np.flatnonzero(np.diff(scores.n_classes, prepend=-1)).tolist()
    for begin, end in pairwise([*changes, len(scores)]):
        known = names[: scores.n_classes[begin]]
        rows, columns = slice(begin, end), slice(len(known))
        predictions = _predictions(known, scores.posterior[rows, columns])
        if abstained is not None:
            for row in np.flatnonzero(abstained[rows] != PREDICTED).tolist():
                predictions[row] = b"null"
        parts: list[Column] = [
            of_ids[rows],
            predictions,
            _numbers(scores.posterior[rows, columns]),
            _numbers(scores.log_odds[rows, columns]),
            _numbers(tokens[rows]),
            _counts(scores.learned_by_class[rows, columns]),
            Table(_json(list(offsets[rows]))[1:-1], 1),
            said[rows],
        ]
        if scores.raw_posterior is not None:
            parts.append(_numbers(scores.raw_posterior[rows, columns]))
        parts += [tail[rows] for tail in tails]
        template = _template(known, model, partition, scores.raw_posterior is not None, len(tails))
        values += _filled(template, parts)
    return values


def _template(known: Sequence[str], model: str, partition: Partition, raw: bool, tails: int) -> list[bytes]:
    """A score's JSON in pieces, cut wherever rows differ; `tails` is how many places end it."""
    by_class = b",".join(_json(name) + b":" + _PLACE for name in known)
    whose = _json({"model": model, "source": {"topic": partition.topic, "partition": partition.number}})
    whole = b"".join(
        [
            b'{"id":%b,"prediction":%b,"posterior":{' % (_PLACE, _PLACE),
            by_class,
            b'},"log_odds":{',
            by_class,
            b'},"known_tokens":%b,"unknown_tokens":%b,"learned":%b' % (_PLACE, _PLACE, _PLACE),
            b',"learned_by_class":{',
            by_class,
            b"},",
            whose[1:-2],
            b',"offset":%b}%b' % (_PLACE, _PLACE),
            b',"raw_posterior":{' + by_class + b"}" if raw else b"",
            _PLACE * tails,
            b"}",
        ]
    )
    return whole.split(_PLACE)


def _predictions(known: Sequence[str], posterior: Floats) -> list[bytes]:
    if not known:
        return [b"null"] * len(posterior)
    order = sorted(range(len(known)), key=known.__getitem__)
    by_place = [_json(known[c]) for c in order]
    return [by_place[place] for place in posterior[:, order].argmax(axis=1).tolist()]


def _numbers(table: Floats | NDArray[np.int64]) -> Table:
    return Table(orjson.dumps(table.ravel(), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1], table.shape[1])


def _counts(table: Floats) -> Table:
    """`_numbers` of counts, whole ones without a point."""
    if (table < 2.0**53).all() and (table == np.trunc(table)).all():  # sooner than floats
        return _numbers(table.astype(np.int64))
    text, width = _numbers(table)
    return Table((text + b",").replace(b".0,", b",")[:-1], width)


def _lines(values: Sequence[str | int]) -> list[bytes]:
    """The JSON of each value: written one a line, where no value holds a newline."""
    return orjson.dumps(values, option=orjson.OPT_INDENT_2)[4:-2].split(b",\n  ")


def _flags(flags: int) -> bytes:
    return b',"flags":' + _json([str(flag.name).lower() for flag in Flag(flags)])


_json = orjson.dumps
_compiled = twins.load("streamnb.wire._template")
_filled = _compiled.filled if _compiled else filled
_PLACE = b"\0"  # which no JSON holds
_WHY = [*(b',"abstained":' + _json(reason) for reason in REASONS), b""]  # `PREDICTED` is the last
