"""Encoding of scores as JSON. A score's identity is its source address, by which a reader detects repeats.

The form is `schemas/score.schema.json`, and tests validate encoded scores against it. A batch is encoded
column by column: orjson writes the numbers of many rows at once, and a template holds the text that all rows
have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from streamnb.base import Flag, Floats, Partition, Scores, twins
from streamnb.wire.abstention import PREDICTED, REASONS, Abstain
from streamnb.wire.field_values import Id
from streamnb.wire.message import KEY_BYTES_MAX
from streamnb.wire.template import Column, Table, filled
from streamnb.wire.top_classes import TOP_CLASSES, TopClasses


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the published scores: which messages get one, and its optional fields.

    Parameters
    ----------
    emit : {"all", "unlabelled"}
        Whether to publish a score for every message or only for those without a label.
    raw_posterior : bool
        Add the product head's posterior over the same counts to the calibrated one.
    explanation : int
        How many tokens to explain the score by; 0 for no explanation.
    state : bool
        Add the next offset of each partition that the model had learned up to: enough to compute the score
        again.
    abstain : Abstain
        When a score names no class.
    top_classes : int
        How many classes a score lists: the likeliest ones, and the summed posterior of the others.
    bytes_max : int
        A score that is larger, with its key, lists only the likeliest class.
    """

    emit: Literal["all", "unlabelled"] = "all"
    raw_posterior: bool = False
    explanation: int = 0
    state: bool = False
    abstain: Abstain = Abstain()
    top_classes: int = TOP_CLASSES
    bytes_max: int = 900_000

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a number out of its range, or a limit that a cut score may exceed."""
        if self.bytes_max < 2 * KEY_BYTES_MAX:
            raise ValueError(
                f"`bytes_max` must be at least {2 * KEY_BYTES_MAX}: a key alone may have {KEY_BYTES_MAX}"
            )
        if self.explanation < 0:
            raise ValueError("`explanation` must not be below 0")
        if self.top_classes < 1:
            raise ValueError("`top_classes` must be at least 1: a score lists the class that it predicts")


def encode_scores(
    scores: Scores,
    *,
    ids: Sequence[Id | None],
    model: str,
    partition: Partition,
    offsets: Sequence[int],
    states: Sequence[Mapping[str, int]] | None = None,
    abstained: NDArray[np.int64] | None = None,
    top_classes: int = TOP_CLASSES,
) -> list[bytes]:
    """Return scores as JSON, one object per row.

    Parameters
    ----------
    scores : Scores
    ids : sequence of str, int or None, length n
        For ``None`` the id is the source address, ``topic-partition-offset``.
    model : str
        The model's name.
    partition : Partition
        The partition that the messages came from.
    offsets : sequence of int
        The offset of each row's record.
    states : sequence of mapping of str to int, optional
        For each row, the next offset per partition of the records that the model had learned.
    abstained : ndarray of int64, shape (n,), optional
        The result of `Abstain.reasons`: which rows name no class, and why.
    top_classes : int
        How many classes a row lists at most.

    Returns
    -------
    list of bytes
        Objects without newlines. Of several classes with the same posterior the prediction is the smallest,
        as in `streamnb.base.batch.likeliest`. A number that JSON cannot represent, such as the log odds of an
        only class, is null.

    Examples
    --------
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
    >>> scores = NaiveBayes(classes=["ham"]).step(Batch({"text": ["hello"]}, [None]))
    >>> encode_scores(scores, ids=["m-1"], model="spam", partition=Partition("mail", 0), offsets=[7])[0][:51]
    b'{"id":"m-1","prediction":"ham","posterior":{"ham":1'
    """
    if not len(scores):
        return []
    names = scores.classes_as_text()
    id_texts = _json_of_each(
        [
            f"{partition}-{offset}" if given is None else given
            for given, offset in zip(ids, offsets, strict=True)
        ]
    )
    flag_texts = [b""] * len(scores)
    for row in np.flatnonzero(scores.flags).tolist():
        flag_texts[row] = _flags(int(scores.flags[row]))
    tails: list[list[bytes]] = []
    if abstained is not None:
        tails.append([_WHY[reason] for reason in abstained.tolist()])
    if scores.explanations is not None:
        tails.append([b"" if why is None else b',"explanation":' + _json(why) for why in scores.explanations])
    if states is not None:
        tails.append([b',"state":' + _json(state) for state in states])
    tokens = np.column_stack([scores.known_tokens, scores.unknown_tokens, scores.learned])
    values: list[bytes] = []
    # A class can appear in the middle of a batch, so each run of rows with the same classes has a template.
    changes = np.flatnonzero(np.diff(scores.n_classes, prepend=-1)).tolist()
    for begin, end in pairwise([*changes, len(scores)]):
        known = names[: scores.n_classes[begin]]
        rows, columns = slice(begin, end), slice(len(known))
        predictions = _predictions(known, scores.posterior[rows, columns])
        if abstained is not None:
            for row in np.flatnonzero(abstained[rows] != PREDICTED).tolist():
                predictions[row] = b"null"
        top = None
        if len(known) > top_classes:
            top = TopClasses.of(known, scores.posterior[rows, columns], top_classes)
        parts: list[Column] = [
            id_texts[rows],
            predictions,
            *_by_class(scores.posterior[rows, columns], top),
            *([] if top is None else [_numbers(top.others[:, None])]),
            *_by_class(scores.log_odds[rows, columns], top),
            _numbers(tokens[rows]),
            *_by_class(scores.learned_by_class[rows, columns], top, _counts),
            Table(_json(list(offsets[rows]))[1:-1], 1),
            flag_texts[rows],
        ]
        if scores.raw_posterior is not None:
            parts += _by_class(scores.raw_posterior[rows, columns], top)
        parts += [tail[rows] for tail in tails]
        keys = [_json(name) + b":" for name in known] if top is None else [_PLACE] * top_classes
        template = _template(
            keys,
            model,
            partition,
            others=top is not None,
            raw=scores.raw_posterior is not None,
            tails=len(tails),
        )
        values += _filled(template, parts)
    return values


def _template(
    keys: Sequence[bytes], model: str, partition: Partition, *, others: bool, raw: bool, tails: int
) -> list[bytes]:
    """Return the JSON of a score in pieces, cut wherever rows differ.

    Parameters
    ----------
    keys : sequence of bytes
        Of each class that is listed, its name as a JSON key, or `_PLACE` where rows list different classes.
    model, partition
        Those of `encode_scores`.
    others : bool
        Whether there are classes that are not listed.
    raw : bool
        Whether there is a raw posterior.
    tails : int
        The number of optional fields at the end, each of which a row may leave empty.
    """
    by_class = b",".join(key + _PLACE for key in keys)
    address = _json({"model": model, "source": {"topic": partition.topic, "partition": partition.number}})
    template = b"".join(
        [
            b'{"id":%b,"prediction":%b,"posterior":{' % (_PLACE, _PLACE),
            by_class,
            b'},"other_classes":%b,"log_odds":{' % _PLACE if others else b'},"log_odds":{',
            by_class,
            b'},"known_tokens":%b,"unknown_tokens":%b,"learned":%b' % (_PLACE, _PLACE, _PLACE),
            b',"learned_by_class":{',
            by_class,
            b"},",
            address[1:-2],
            b',"offset":%b}%b' % (_PLACE, _PLACE),
            b',"raw_posterior":{' + by_class + b"}" if raw else b"",
            _PLACE * tails,
            b"}",
        ]
    )
    return template.split(_PLACE)


def _predictions(known: Sequence[str], posterior: Floats) -> list[bytes]:
    if not known:
        return [b"null"] * len(posterior)
    order = sorted(range(len(known)), key=known.__getitem__)
    by_place = [_json(known[c]) for c in order]
    return [by_place[place] for place in posterior[:, order].argmax(axis=1).tolist()]


def _numbers(table: Floats | NDArray[np.int64]) -> Table:
    return Table(orjson.dumps(table.ravel(), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1], table.shape[1])


def _counts(table: Floats) -> Table:
    """Return `_numbers` of a table of counts, with whole numbers written without a decimal point."""
    if (table < 2.0**53).all() and (table == np.trunc(table)).all():  # faster than editing the text
        return _numbers(table.astype(np.int64))
    text, width = _numbers(table)
    return Table((text + b",").replace(b".0,", b",")[:-1], width)


def _by_class(
    table: Floats, top: TopClasses | None, write: Callable[[Floats], Table] = _numbers
) -> list[Column]:
    """Return a table's columns: of all classes, or of the likeliest ones with a JSON key before each."""
    return [write(table)] if top is None else top.with_keys(write(top.taken(table)))


def _json_of_each(values: Sequence[str | int]) -> list[bytes]:
    """Return the JSON of each value, by writing all on lines: JSON strings hold no raw newline."""
    return orjson.dumps(values, option=orjson.OPT_INDENT_2)[4:-2].split(b",\n  ")


def _flags(flags: int) -> bytes:
    return b',"flags":' + _json(Flag(flags).names)


_json = orjson.dumps
_compiled = twins.load("streamnb.wire._template")
_filled = _compiled.filled if _compiled else filled
_PLACE = b"\0"  # marks where rows differ; JSON text never contains this byte
_WHY = [*(b',"abstained":' + _json(reason) for reason in REASONS), b""]  # `PREDICTED`, -1, is the last one
