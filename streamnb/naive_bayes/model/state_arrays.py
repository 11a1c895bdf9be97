"""A model's state as plain values and arrays, and back: freeze, restore, digest, and what must agree."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np
import orjson

from streamnb.base import (
    HINT,
    Digest,
    FrozenState,
    Section,
    Sections,
    counted,
    digests,
    statement,
)
from streamnb.errors import MismatchError, SnapshotError
from streamnb.naive_bayes.features.alphabet import UNICODE
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.statistics.token_trust import TRUST_SECTION

LEARNED_MAX = 1 << 53  # messages; a float64 holds every integer up to it


def freeze(state: State) -> FrozenState:
    """Return the state as plain values and arrays that later learning does not change."""
    with state.lock:
        return _freeze(state)


def _freeze(state: State) -> FrozenState:
    counts = state.counts.freeze()
    sections: dict[str, Section] = dict(counts)
    sections["class_counts"] = np.array([state.class_counts], np.float64)
    for i, statistic in enumerate(state.statistics.values()):
        sections |= statistic.freeze(f"block{i}")
    if state.head is not None:
        sections.update(state.head.freeze())
    values: dict[str, object] = {"classes": list(state.classes), "learned": state.learned}
    if state.counts.evicted_tokens:
        values |= {"evicted_tokens": state.counts.evicted_tokens, "evicted_mass": state.counts.evicted_mass}
    if state.counts.fell_short:
        values["fell_short"] = state.counts.fell_short
    if state.decay is not None:
        values["forgetting"] = state.decay.freeze()
    store, names = state.counts, _class_names(state)
    order_free, rest, rounded = _order_free(state), _order_kept(state), state.decay is not None
    return FrozenState(
        values,
        sections,
        lambda: digests(
            store.digest(names, counts),
            order_free,
            _sum_of(rest, store.trust_digest(counts)),
            rounded=rounded,
        ),
    )


def restore(state: State, values: Mapping[str, object], sections: Sections) -> None:
    """Restore what `freeze` returned into a model that has learned nothing.

    Raises
    ------
    SnapshotError
        The state does not fit this model, which must not be used afterwards.
    MismatchError
        It has learned the trust of tokens, of which this model would keep nothing.
    """
    untrusting = state.head is not None and not state.trust
    if untrusting and TRUST_SECTION in sections and np.any(sections[TRUST_SECTION]):
        raise MismatchError(
            "The snapshot has learned the trust of its tokens, and `model.trust = false` would drop that.",
            "Set `model.trust = true`, or write a snapshot without it: `streamnb snapshot grow`.",
        )
    classes, learned = values.get("classes"), values.get("learned")
    if not isinstance(classes, list) or not isinstance(learned, int) or not 0 <= learned < LEARNED_MAX:
        raise SnapshotError("The state lacks its classes or its number of messages.", HINT)
    for label in classes:
        if not isinstance(label, str | bool | int) or type(label) is not type(classes[0]):
            raise SnapshotError(
                f"The class {label!r} is not a string, integer or truth value like {classes[0]!r}.", HINT
            )
        state.class_index(label)
    n_classes = len(state.classes)
    if state.classes[: len(classes)] != classes:
        raise SnapshotError(
            f"The snapshot's classes {classes} do not begin with the declared {list(state.declared)}.",
            "Declare classes in `model.classes` only before the first start, or not at all.",
        )
    state.class_counts = counted(sections, "class_counts", (1, n_classes))[0].tolist()
    state.learned = learned
    state.counts.restore(sections, n_classes)
    tokens, mass = values.get("evicted_tokens", 0), values.get("evicted_mass", 0.0)
    if not isinstance(tokens, int) or not isinstance(mass, int | float) or not 0 <= mass < math.inf:
        raise SnapshotError("The snapshot's number or mass of evicted tokens is not valid.", HINT)
    state.counts.evicted_tokens, state.counts.evicted_mass = tokens, float(mass)
    short = values.get("fell_short", 0)
    if not isinstance(short, int) or short < 0:
        raise SnapshotError("The snapshot's number of incompletely unlearned tokens is not valid.", HINT)
    state.counts.fell_short = short
    if state.decay is not None:
        state.decay.restore(values.get("forgetting"))
    state.recount()
    for i, statistic in enumerate(state.statistics.values()):
        statistic.restore(sections, n_classes, f"block{i}")
    if state.head is not None:
        state.head.restore(sections, n_classes)
        if state.head.length.n != state.class_counts:
            raise SnapshotError("The head's length sums and the class counts do not match.", HINT)


def digest(state: State) -> dict[str, str]:
    """Return two hashes of the state, ``order_free`` and ``all``, of 32 hexadecimal digits each.

    Equal states have equal digests. ``order_free`` covers what does not depend on the order of messages
    (counts, totals, classes and lengths, for weights that are multiples of 1/256); ``all`` also covers
    moments and the head. In a model that forgets every sum is rounded, and ``order_free`` covers only the
    number of messages learned.
    """
    with state.lock:
        counts, rounded = state.counts.digest(_class_names(state)), state.decay is not None
        rest = _sum_of(_order_kept(state), state.counts.trust_digest())
        return digests(counts, _order_free(state), rest, rounded=rounded)


def _sum_of(*parts: Digest) -> Digest:
    total = Digest()
    for part in parts:
        total.add_digest(part)
    return total


def _class_names(state: State) -> list[str]:
    return [orjson.dumps(label).decode() for label in state.classes]


def _order_free(state: State) -> Digest:
    """Return the digest of what does not depend on the order of messages, except the counts."""
    digest = Digest()
    digest.add(statement("learned"), state.learned)
    if state.decay is None:
        digest.add_digest(_sums(state))
    return digest


def _sums(state: State) -> Digest:
    """Return the digest of class counts and length sums."""
    names, digest = _class_names(state), Digest()
    for class_name, n in zip(names, state.class_counts, strict=True):
        if n:  # a class whose messages were all unlearned counts as never seen
            digest.add(statement("class", class_name), n)
    if state.head is not None:
        digest.add_digest(state.head.length.digest("length", names))
    return digest


def _order_kept(state: State) -> Digest:
    """Return the digest of what depends on the order of messages or is rounded, without the tokens' trust."""
    names, digest = _class_names(state), Digest()
    if state.counts.evicted_tokens:
        digest.add(statement("evicted"), state.counts.evicted_tokens, state.counts.evicted_mass)
    for view, statistic in state.statistics.items():
        digest.add_digest(statistic.digest(view, names))
    if state.head is not None:
        digest.add_digest(state.head.digest(names))
    if state.decay is not None:
        digest.add_digest(_sums(state))
        digest.add_digest(state.decay.digest())
    return digest


def state_settings(state: State) -> dict[str, object]:
    """Return the settings that the statistics depend on; a snapshot made under others does not fit."""
    statistics: dict[str, object] = {
        "head": state.head_kind,
        "tokenizer": state.tokenizer.state_settings(),
        "unicode": dict(UNICODE),
        "views": [view.state_settings for view in state.views],
    }
    if state.decay is not None:  # stored only where it is set, so that older snapshots load
        statistics["forgetting"] = msgspec.to_builtins(state.decay.settings)
    return statistics


def reading_settings(state: State) -> dict[str, object]:
    """Return the settings that only affect how the statistics are used; they may change at any start."""
    return {
        "trust": state.trust,
        "classes_max": state.classes_max,
        "declared": list(state.declared),
        "bytes_max": state.bytes_max,
        "max_tokens": state.max_tokens,
        "event_models": {view.name: view.reading_settings for view in state.views},
        "prior": msgspec.to_builtins(state.prior),
    }
