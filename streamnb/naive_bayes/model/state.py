"""The state of a model: its classes, the statistic of each view, the head; freeze, restore and digest.

`NaiveBayes` scores from the state and learns into it.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
import numpy as np
import orjson

from streamnb.base import (
    HINT,
    Batch,
    Digest,
    FrozenState,
    Label,
    Section,
    Sections,
    checked_labels,
    counted,
    digests,
    statement,
)
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.event_models import Statistic
from streamnb.naive_bayes.event_models.priors import LearnedPrior, Prior
from streamnb.naive_bayes.features.alphabet import UNICODE_VERSION
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.compiled import is_compiled, twins
from streamnb.naive_bayes.model.view import EVERY_FIELD, TEXT_ONLY, View, named
from streamnb.naive_bayes.posterior.calibrated_head import CalibratedHead
from streamnb.naive_bayes.statistics.forgetting import Decay, Forgetting
from streamnb.naive_bayes.statistics.token_counts import TokenCounts

VIEWS_MAX = 256  # a view's number is one byte in the compiled store
LEARNED_MAX = 1 << 53  # messages; a float64 holds every integer up to it
HeadKind = Literal["calibrated", "product"]


class State:
    """The settings and the sufficient statistics of a model; see `NaiveBayes` for the parameters.

    Attributes
    ----------
    classes : list of Label
        In order of appearance, declared ones first.
    class_counts : list of float
        Weight of the messages learned, per class.
    learned : int
        Messages learned.
    counts : CountStore
        The tokens of all views that count tokens.
    statistics : dict of str to Statistic
        One per view. Those of tokens count in the shared store.
    head : CalibratedHead or None
        ``None`` for the product head, which learns nothing.
    decay : Decay or None
        The decay of a model that forgets, else ``None``. With decay all sums are in units of the landmark;
        divide them by ``decay.scale(decay.now())`` for sums in present messages.
    """

    def __init__(
        self,
        views: Sequence[View] | None = None,
        *,
        prior: Prior | None = None,
        head: HeadKind | None = None,
        classes: Sequence[Label] = (),
        classes_max: int = 256,
        max_tokens: int | None = None,
        tokenizer: Tokenizer | None = None,
        raw: bool = False,
        explain: int = 0,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
        time_skew_max_s: float = 3600.0,
        compiled: bool | None = None,
    ) -> None:
        if views is None:
            views, head = (
                EVERY_FIELD if head != "calibrated" else (*TEXT_ONLY, *EVERY_FIELD[1:]),
                head or "product",
            )
        self.views = tuple(views)
        self.text_views = [i for i, view in enumerate(self.views) if view.reads == "text"]
        self.token_view = self._token_view()
        self.other_views = [i for i in range(len(self.views)) if i not in self.text_views]
        self.head_kind: HeadKind = head or self._head_that_suits()
        forgetting = Forgetting(half_life_s, half_life_messages, time_skew_max_s)
        self.decay = Decay(forgetting) if forgetting.is_on else None
        self._check(prior)
        self.prior = prior or LearnedPrior()
        self.tokenizer = tokenizer or Tokenizer()
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        if max_tokens is not None and max_tokens < 16:
            raise ValueError(f"`max_tokens` must be at least 16, not {max_tokens}")
        self.raw = raw
        self.explain = explain
        self.declared = tuple(classes)
        self.classes: list[Label] = []
        self.index: dict[Label, int] = {}
        self.class_counts: list[float] = []
        self.learned = 0
        self.compiled = is_compiled(self.views, self.prior, compiled)
        kinds, rounded = twins(compiled=self.compiled), self.decay is not None
        counted_views = [view.name for view in self.views if view.formulas.counts_tokens]
        self.counts = kinds.count_store(counted_views, max_tokens)
        self.statistics: dict[str, Statistic] = {
            view.name: view.statistic(self.counts, kinds, rounded=rounded) for view in self.views
        }
        self.head: CalibratedHead | None = None
        if self.head_kind == "calibrated":
            self.head = CalibratedHead(len(self.text_views), len(self.other_views))
        checked_labels(Batch({}, self.declared), ())
        for label in classes:
            self.class_index(label)
        self.lock = self._lock_of_counts()
        self._driver = _kernel.Driver(self) if self.compiled else None

    def _lock_of_counts(self) -> threading.RLock:
        """Return the lock under which one thread at a time learns, scores or freezes, batch by batch."""
        return getattr(self.counts, "lock", None) or threading.RLock()  # the plain store has none

    def __getstate__(self) -> dict[str, object]:
        """Return a deep copy, because another thread may learn while the state is being serialised."""
        with self.lock:
            kept = {name: value for name, value in self.__dict__.items() if name not in {"_driver", "lock"}}
            return copy.deepcopy(kept)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.lock = self._lock_of_counts()
        self._driver = _kernel.Driver(self) if self.compiled else None

    def _token_view(self) -> int | None:
        """Return the index of the view whose known and unknown tokens are counted: the first with tokens."""
        for kinds in ({"text"}, {"terms"}, {""}):
            for i, view in enumerate(self.views):
                if view.reads in kinds and view.formulas.counts_tokens:
                    return i
        return None

    def _head_that_suits(self) -> HeadKind:
        fed = all(self.views[i].formulas.feeds_head for i in self.text_views)
        return "calibrated" if self.text_views and fed else "product"

    def _check(self, prior: Prior | None) -> None:
        names = [view.name for view in self.views]
        if not 0 < len(names) < VIEWS_MAX or len(set(names)) != len(names):
            raise ValueError("a model needs from 1 to 255 views, each with a name of its own")
        for view in self.views:
            if view.is_own and self.decay is not None:
                raise ValueError(f"view `{view.name}`: an event model of your own has no half-life")
        if self.head_kind == "product":
            return
        if not self.text_views:
            raise ValueError('the calibrated head needs a view of text; without one, use head="product"')
        if prior is not None:
            raise ValueError(
                'the calibrated head learns an offset per class; a prior goes with head="product"'
            )
        for i in self.text_views:
            with named(self.views[i]):
                self.views[i].formulas.check_for_head()

    def class_index(self, label: Label) -> int:
        """Return the index of a class; a new class is appended."""
        known = self.index.get(label)
        if known is not None:
            return known
        self.counts.add_class()
        self.adopt([*self.classes, label])
        return len(self.classes) - 1

    def adopt(self, classes: Sequence[Label]) -> None:
        """Append the classes of `classes` past those known; the count store already has their columns."""
        for label in classes[len(self.classes) :]:
            self.index[label] = len(self.classes)
            self.classes.append(label)
            self.class_counts.append(0.0)
            for statistic in self.statistics.values():
                statistic.add_class()
            if self.head is not None:
                self.head.add_class()

    @property
    def fell_short(self) -> int:
        """Tokens whose count was smaller than the amount to unlearn: eviction had removed part of it."""
        return self.counts.fell_short

    def active(self) -> list[int]:
        """Return the indices of the classes labelled so far; only these have evidence."""
        return [c for c, n in enumerate(self.class_counts) if n > 0]

    def has_room_for(self, label: Label) -> bool:
        """Return whether a label is a known class or may become one under `classes_max`."""
        return label in self.index or len(self.classes) < self.classes_max

    def freeze(self) -> FrozenState:
        """Return the state as plain values and arrays that later learning does not change."""
        with self.lock:
            return self._freeze()

    def _freeze(self) -> FrozenState:
        counts = self.counts.freeze()
        sections: dict[str, Section] = dict(counts)
        sections["class_counts"] = np.array([self.class_counts], np.float64)
        for i, statistic in enumerate(self.statistics.values()):
            sections |= statistic.freeze(f"block{i}")
        if self.head is not None:
            sections.update(self.head.freeze())
        values: dict[str, object] = {"classes": list(self.classes), "learned": self.learned}
        if self.counts.evicted_tokens:
            values |= {"evicted_tokens": self.counts.evicted_tokens, "evicted_mass": self.counts.evicted_mass}
        if self.counts.fell_short:
            values["fell_short"] = self.counts.fell_short
        if self.decay is not None:
            values["forgetting"] = self.decay.freeze()
        store, names = self.counts, self._class_names()
        order_free, rest, rounded = self._order_free(), self._order_kept(), self.decay is not None
        return FrozenState(
            values,
            sections,
            lambda: digests(store.digest(names, counts), order_free, rest, rounded=rounded),
        )

    def restore(self, values: Mapping[str, object], sections: Sections) -> None:
        """Restore what `freeze` returned into a model that has learned nothing.

        Raises
        ------
        SnapshotError
            The state does not fit this model, which must not be used afterwards.
        """
        classes, learned = values.get("classes"), values.get("learned")
        if not isinstance(classes, list) or not isinstance(learned, int) or not 0 <= learned < LEARNED_MAX:
            raise SnapshotError("The state lacks its classes or its number of messages.", HINT)
        for label in classes:
            if not isinstance(label, str | bool | int) or type(label) is not type(classes[0]):
                raise SnapshotError(
                    f"The class {label!r} is not a string, integer or truth value like {classes[0]!r}.", HINT
                )
            self.class_index(label)
        n_classes = len(self.classes)
        if self.classes[: len(classes)] != classes:
            raise SnapshotError(
                f"The snapshot's classes {classes} do not begin with the declared {list(self.declared)}.",
                "Declare classes in `model.classes` only before the first start, or not at all.",
            )
        self.class_counts = counted(sections, "class_counts", (1, n_classes))[0].tolist()
        self.learned = learned
        self.counts.restore(sections, n_classes)
        tokens, mass = values.get("evicted_tokens", 0), values.get("evicted_mass", 0.0)
        if not isinstance(tokens, int) or not isinstance(mass, int | float) or not 0 <= mass < math.inf:
            raise SnapshotError("The snapshot's number or mass of evicted tokens is not valid.", HINT)
        self.counts.evicted_tokens, self.counts.evicted_mass = tokens, float(mass)
        short = values.get("fell_short", 0)
        if not isinstance(short, int) or short < 0:
            raise SnapshotError("The snapshot's number of incompletely unlearned tokens is not valid.", HINT)
        self.counts.fell_short = short
        if self.decay is not None:
            self.decay.restore(values.get("forgetting"))
        self.recount()
        for i, statistic in enumerate(self.statistics.values()):
            statistic.restore(sections, n_classes, f"block{i}")
        if self.head is not None:
            self.head.restore(sections, n_classes)
            if self.head.length.n != self.class_counts:
                raise SnapshotError("The head's length sums and the class counts do not match.", HINT)

    def digest(self) -> dict[str, str]:
        """Return two hashes of the state, ``order_free`` and ``all``, of 32 hexadecimal digits each.

        Equal states have equal digests. ``order_free`` covers what does not depend on the order of messages
        (counts, totals, classes and lengths, for weights that are multiples of 1/256); ``all`` also covers
        moments and the head. In a model that forgets every sum is rounded, and ``order_free`` covers only the
        number of messages learned.
        """
        with self.lock:
            counts, rounded = self.counts.digest(self._class_names()), self.decay is not None
            return digests(counts, self._order_free(), self._order_kept(), rounded=rounded)

    def _class_names(self) -> list[str]:
        return [orjson.dumps(label).decode() for label in self.classes]

    def _order_free(self) -> Digest:
        """Return the digest of what does not depend on the order of messages, except the counts."""
        digest = Digest()
        digest.add(statement("learned"), self.learned)
        if self.decay is None:
            digest.add_digest(self._sums())
        return digest

    def _sums(self) -> Digest:
        """Return the digest of class counts and length sums."""
        names, digest = self._class_names(), Digest()
        for class_name, n in zip(names, self.class_counts, strict=True):
            if n:  # a class whose messages were all unlearned counts as never seen
                digest.add(statement("class", class_name), n)
        if self.head is not None:
            digest.add_digest(self.head.length.digest("length", names))
        return digest

    def _order_kept(self) -> Digest:
        """Return the digest of what depends on the order of messages or is rounded."""
        names, digest = self._class_names(), Digest()
        if self.counts.evicted_tokens:
            digest.add(statement("evicted"), self.counts.evicted_tokens, self.counts.evicted_mass)
        for view, statistic in self.statistics.items():
            digest.add_digest(statistic.digest(view, names))
        if self.head is not None:
            digest.add_digest(self.head.digest(names))
        if self.decay is not None:
            digest.add_digest(self._sums())
            digest.add_digest(self.decay.digest())
        return digest

    def token_statistics(self) -> dict[str, TokenCounts[Any]]:
        """Return the statistics of the views that count tokens, by view."""
        return {name: cast("TokenCounts[Any]", self.statistics[name]) for name in self.counts}

    def recount(self) -> None:
        """Rebuild the tallies from the counts, after the store has changed as a whole."""
        for statistic in self.token_statistics().values():
            statistic.recount(self.class_counts)

    # ---- what a snapshot must agree on

    def state_settings(self) -> dict[str, object]:
        """Return the settings that the statistics depend on; a snapshot made under others does not fit."""
        statistics: dict[str, object] = {
            "head": self.head_kind,
            "tokenizer": self.tokenizer.state_settings(),
            "unicode": UNICODE_VERSION,
            "views": [view.state_settings for view in self.views],
        }
        if self.decay is not None:  # stored only where it is set, so that older snapshots load
            statistics["forgetting"] = msgspec.to_builtins(self.decay.settings)
        return statistics

    def reading_settings(self) -> dict[str, object]:
        """Return the settings that only affect how the statistics are used; they may change at any start."""
        return {
            "classes_max": self.classes_max,
            "declared": list(self.declared),
            "max_tokens": self.max_tokens,
            "event_models": {view.name: msgspec.to_builtins(view.event_model) for view in self.views},
            "prior": msgspec.to_builtins(self.prior),
        }
