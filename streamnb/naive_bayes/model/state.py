"""The state of a model: its classes, the statistic of each view, the head; freeze, restore and digest.

`NaiveBayes` scores from the state and learns into it.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, cast, get_args

from streamnb.base import (
    Batch,
    Label,
    checked_labels,
)
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.event_models import Statistic
from streamnb.naive_bayes.event_models.priors import LearnedPrior, Prior
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.compiled import is_compiled, twins
from streamnb.naive_bayes.model.view import View, named
from streamnb.naive_bayes.posterior.calibrated_head import CalibratedHead
from streamnb.naive_bayes.statistics.budget import BYTES_MAX, BYTES_MIN
from streamnb.naive_bayes.statistics.forgetting import Decay, Forgetting
from streamnb.naive_bayes.statistics.token_counts import TokenCounts

TOKENS_MAX = 1 << 40  # more than any memory holds
VIEWS_MAX = 256  # a view's number is one byte in the compiled store
LEARNED_MAX = 1 << 53  # messages; a float64 holds every integer up to it
HeadKind = Literal["calibrated", "product"]
Value = TypeVar("Value")


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
        views: Sequence[View],
        *,
        prior: Prior | None = None,
        head: HeadKind | None = None,
        classes: Sequence[Label] = (),
        classes_max: int | None = None,
        max_tokens: int | None = None,
        bytes_max: int | None = None,
        tokenizer: Tokenizer | None = None,
        trust: bool = True,
        raw: bool = False,
        explain: int = 0,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
        time_skew_max_s: float = 3600.0,
        compiled: bool | None = None,
    ) -> None:
        self.views = _checked(views, head, prior, classes, classes_max)
        self.text_views = [
            i for i, view in enumerate(self.views) if view.reads == "text" and not view.reads_strings
        ]
        self.token_view = self._token_view()
        self.string_views = [i for i, view in enumerate(self.views) if view.reads_strings]
        read_apart = {*self.text_views, *self.string_views}
        self.other_views = [i for i in range(len(self.views)) if i not in read_apart]
        self.head_kind: HeadKind = head or self._head_that_suits()
        forgetting = Forgetting(half_life_s, half_life_messages, time_skew_max_s)
        self.decay = Decay(forgetting) if forgetting.is_on else None
        self._check(prior)
        self.prior = prior or LearnedPrior()
        self.tokenizer = tokenizer or Tokenizer()
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.bytes_max = bytes_max
        if bytes_max is not None and not BYTES_MIN <= bytes_max <= BYTES_MAX:
            raise ValueError(f"`bytes_max` must be from {BYTES_MIN} to {BYTES_MAX} bytes, not {bytes_max!r}")
        if max_tokens is not None and not 16 <= max_tokens <= TOKENS_MAX:
            raise ValueError(f"`max_tokens` must be from 16 to {TOKENS_MAX}, not {max_tokens}")
        if explain < 0:
            raise ValueError(f"`explain` must be at least 0, not {explain}")
        self.raw = raw
        self.explain = explain
        declared, _ = checked_labels(Batch({}, tuple(classes)), ())
        if None in declared:
            raise ValueError("`classes` must be a list of labels, and None is no label")
        self.declared = cast("tuple[Label, ...]", tuple(declared))
        self.classes: list[Label] = []
        self.index: dict[Label, int] = {}
        self.class_counts: list[float] = []
        self.learned = 0
        self.compiled = is_compiled(self.views, self.prior, compiled)
        kinds, rounded = twins(compiled=self.compiled), self.decay is not None
        counted_views = [view.name for view in self.views if view.formulas.counts_tokens]
        self.trust = trust and self.head_kind == "calibrated"
        self.counts = kinds.count_store(counted_views, max_tokens, bytes_max, trusts=self.trust)
        self.counts.worths = {
            view.name: view.formulas.worth for view in self.views if view.formulas.counts_tokens
        }
        self.statistics: dict[str, Statistic] = {
            view.name: view.statistic(self.counts, kinds, rounded=rounded) for view in self.views
        }
        self.head: CalibratedHead | None = None
        if self.head_kind == "calibrated":
            self.head = CalibratedHead(
                len(self.text_views),
                len(self.other_views),
                len(self.string_views),
                shapes=[place for place, i in enumerate(self.text_views) if self.views[i].reads_shapes],
                trusts=self.trust,
            )
        for label in self.declared:
            self.class_index(label)
        self.lock = self._lock_of_counts()
        self.driver = _kernel.Driver(self) if self.compiled else None

    def _lock_of_counts(self) -> threading.RLock:
        """Return the lock under which one thread at a time learns, scores or freezes, batch by batch."""
        return getattr(self.counts, "lock", None) or threading.RLock()  # the plain store has none

    def become(self, other: State) -> None:
        """Take over all that another state holds. Threads that wait for this one's lock go on with it."""
        with self.lock:
            lock = self.lock
            self.__dict__.update(other.__dict__)
            self.lock = lock
            if hasattr(self.counts, "lock"):
                self.counts.lock = lock

    def __getstate__(self) -> dict[str, object]:
        """Return a deep copy, because another thread may learn while the state is being serialised."""
        with self.lock:
            kept = {name: value for name, value in self.__dict__.items() if name not in {"driver", "lock"}}
            return copy.deepcopy(kept)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.lock = self._lock_of_counts()
        self.driver = _kernel.Driver(self) if self.compiled else None

    def _token_view(self) -> int | None:
        """Return the index of the view whose known and unknown tokens are counted: the first with tokens."""
        for kinds in ({"text"}, {"terms"}, {""}):
            for i, view in enumerate(self.views):
                if view.reads in kinds and view.formulas.counts_tokens and not view.reads_strings:
                    return i
        return None

    def _head_that_suits(self) -> HeadKind:
        fed = all(self.views[i].formulas.feeds_head for i in self.text_views)
        return "calibrated" if self.text_views and fed else "product"

    def _check(self, prior: Prior | None) -> None:
        names = [view.name for view in self.views]
        if not 0 < len(names) < VIEWS_MAX:
            raise ValueError(f"a model needs from 1 to {VIEWS_MAX - 1} views, not {len(names)}")
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            raise ValueError(
                f"views have the same name: {', '.join(map(repr, twice))}. Give each one of its own"
            )
        for view in self.views:
            if view.is_own and self.decay is not None:
                raise ValueError(f"view `{view.name}`: an event model of your own has no half-life")
        if self.head_kind == "product":
            return
        if not self.text_views:
            raise ValueError('the calibrated head needs a view of text; without one, use head="product"')
        if prior is not None:
            raise ValueError(
                '`prior` needs head="product": the calibrated head learns an offset per class instead'
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
        """Return the indices of the classes learned so far; only these have evidence."""
        return [c for c, n in enumerate(self.class_counts) if n > 0]

    def never_labelled(self) -> list[int]:
        """Return the indices of the declared classes of which no message is learned."""
        return [
            c for c, label in enumerate(self.classes) if label in self.declared and not self.class_counts[c]
        ]

    def without_unlearned(self, posterior: dict[Label, Value]) -> dict[Label, Value]:
        """Leave out the classes whose messages were all unlearned: as if they had never been learned."""
        if 0.0 in self.class_counts:
            for label, n in zip(self.classes, self.class_counts, strict=True):
                if not n and label not in self.declared:
                    posterior.pop(label, None)
        return posterior

    def has_room_for(self, label: Label) -> bool:
        """Return whether a label is a known class or may become one under `classes_max`."""
        return self.classes_max is None or label in self.index or len(self.classes) < self.classes_max

    def check_room_for(self, labels: Sequence[Label | None]) -> None:
        """Raise ``ValueError`` if the labels would make more classes than `classes_max`."""
        if self.classes_max is None:
            return
        known, _ = checked_labels(Batch({}, labels), self.classes)
        new = [label for label in dict.fromkeys(known) if label is not None and label not in self.index]
        if len(self.classes) + len(new) > self.classes_max:
            refused = new[self.classes_max - len(self.classes)]
            limit = f"`classes_max`, {self.classes_max}"
            raise ValueError(f"{refused!r} would be one class more than {limit}; nothing was learned")

    def token_statistics(self) -> dict[str, TokenCounts[Any]]:
        """Return the statistics of the views that count tokens, by view."""
        return {name: cast("TokenCounts[Any]", self.statistics[name]) for name in self.counts}

    def recount(self) -> None:
        """Rebuild the tallies from the counts, after the store has changed as a whole."""
        for statistic in self.token_statistics().values():
            statistic.recount(self.class_counts)


def _checked(
    views: Sequence[View],
    head: object,
    prior: object,
    classes: Sequence[Label],
    classes_max: int | None,
) -> tuple[View, ...]:
    """Return the views as a tuple, after checking the types of the parameters.

    Raises
    ------
    ValueError
        A parameter has another type or value than it may have; the error names what is allowed.
    """
    if not isinstance(views, list | tuple) or not all(isinstance(view, View) for view in views):
        raise ValueError(f"`views` must be a list of View(name, reader, event_model), not {views!r}")
    if head not in {None, *get_args(HeadKind)}:
        raise ValueError(f'`head` must be "calibrated" or "product", not {head!r}')
    if prior is not None and not isinstance(prior, Prior):
        raise ValueError(
            f"`prior` must be one of streamnb's priors, such as FixedPrior({{...}}), not {prior!r}"
        )
    if isinstance(classes, str) or not hasattr(classes, "__len__"):
        raise ValueError(f"`classes` must be a list of labels, not {classes!r}")
    if classes_max is not None and not classes_max >= max(1, len(classes)):
        raise ValueError(f"`classes_max` must be at least {max(1, len(classes))}, not {classes_max!r}")
    return tuple(views)
