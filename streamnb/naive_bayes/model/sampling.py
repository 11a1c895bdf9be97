"""Sampling: draw a class, then the features of each view, and write them as the fields of a message."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import numpy as np
import orjson

from streamnb.base import Label
from streamnb.naive_bayes.event_models import Bernoulli, Generative, Multivariate
from streamnb.naive_bayes.features.readers import (
    Category,
    CharacterGrams,
    Ends,
    Flags,
    Number,
    Terms,
    WordPairs,
    Words,
    field_of,
    value_of,
)
from streamnb.naive_bayes.model.scoring import Scorer
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.moments import Moments
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.naive_bayes.statistics.scatter import Scatter


def sample(model: Scorer, n: int, seed: int) -> Iterator[tuple[dict[str, object], Label]]:
    """Draw labelled messages; see `NaiveBayes.sample`."""
    active = model.active()
    if not active:
        raise ValueError("nothing was learned, so there is nothing to draw from")
    random = np.random.default_rng(seed)
    views = [_Urn(model, i, active) for i in range(len(model.views))]
    prior = np.exp(model.log_prior(active))
    for _ in range(n):
        c = int(random.choice(len(active), p=prior / prior.sum()))
        x: dict[str, object] = {}
        for urn in views:
            for field, value in urn.draw(c, random).items():
                if field in x:
                    raise ValueError(f"two views read the field `{field}`; it cannot be drawn by both")
                x[field] = value
        yield x, model.classes[active[c]]


class _Urn:
    """Draws the fields of one view."""

    def __init__(self, model: Scorer, i: int, active: list[int]) -> None:
        self.model = model
        self.view: View = model.views[i]
        self.i = i
        self.active = active
        self.tokens = list(model.counts[self.view.name].rows) if self.view.keeps == "counts" else []
        self.shares: dict[int, list[float]] = {}
        if isinstance(self.view.reader, WordPairs | CharacterGrams | Ends):
            raise ValueError(
                f"view `{self.view.name}`: text cannot be rebuilt from pairs, character grams or ends"
            )

    def draw(self, c: int, random: np.random.Generator) -> dict[str, object]:
        """Return the fields of one message of class c, by name."""
        reader = self.view.reader
        if isinstance(reader, Number):
            return {reader.field: self._number(self.model.moments[self.view.name], c, random)}
        if self.view.keeps == "block":
            return self._placed(self._block(c, random))
        if isinstance(reader, Words):
            return {reader.fields[0]: " ".join(self._words(c, random))}
        if isinstance(reader, Terms):
            words = self._words(c, random)
            return {reader.field: {word: words.count(word) for word in dict.fromkeys(words)}}
        if isinstance(reader, Category):
            shares = np.array(self._phi(c))
            return {
                reader.field: orjson.loads(self.tokens[random.choice(len(shares), p=shares / shares.sum())])
            }
        return self._placed(self._categories(c, random))

    def _placed(self, values: dict[str, object]) -> dict[str, object]:
        field = getattr(self.view.reader, "field", "")
        return {field: values} if field else values

    def _phi(self, c: int) -> list[float]:
        """Return the probability of each token in class c."""
        if c not in self.shares:
            self.shares[c] = []
            for token in self.tokens:
                parts = dict(self.model.parts(self.i, {token: 1.0}, self.active))
                z = parts.get(token)
                self.shares[c].append(math.exp(z[c]) if z is not None else 0.0)
        return self.shares[c]

    def _words(self, c: int, random: np.random.Generator) -> list[str]:
        if not self.tokens:
            return []
        shares = np.array(self._phi(c))
        if isinstance(self.view.event_model, Bernoulli):
            return [self.tokens[j] for j in np.flatnonzero(random.random(len(shares)) < shares)]
        counts = self.model.counts[self.view.name]
        messages = self.model.class_counts[self.active[c]]
        n = int(random.poisson(counts.totals[self.active[c]] / messages))
        if not shares.sum():
            return []
        return [self.tokens[j] for j in random.choice(len(shares), size=n, p=shares / shares.sum())]

    def _categories(self, c: int, random: np.random.Generator) -> dict[str, object]:
        """Return a value for each field, drawn from the values it has had."""
        by_field: dict[str, list[int]] = {}
        for j, token in enumerate(self.tokens):
            by_field.setdefault(field_of(token), []).append(j)
        found: dict[str, object] = {}
        for field, places in by_field.items():
            shares = np.array([self._phi(c)[j] for j in places])
            if isinstance(self.view.reader, Flags):  # one of the two values may never have been seen
                p = shares[0] if self.tokens[places[0]].endswith("=true") else 1.0 - shares[0]
                found[field] = bool(random.random() < p)
            elif shares.sum():
                found[field] = value_of(
                    self.tokens[places[random.choice(len(places), p=shares / shares.sum())]]
                )
        return found

    def _block(self, c: int, random: np.random.Generator) -> dict[str, object]:
        statistic = self.model.blocks[self.view.name]
        if isinstance(self.view.event_model, Generative):
            return dict(self.view.event_model.draw(statistic, self.active[c], random))
        if isinstance(self.view.event_model, Multivariate) and isinstance(statistic, Scatter):
            normal = Random(int(random.integers(2**63)))  # noqa: S311 - no secret is drawn
            return dict(self.view.event_model.sample(statistic, self.active[c], normal))
        if self.view.is_own or not isinstance(statistic, NumberBlock):
            raise ValueError(f"view `{self.view.name}`: its event model has no `draw`")
        return {key: self._number(moments, c, random) for key, moments in statistic.numbers.items()}

    def _number(self, moments: Moments, c: int, random: np.random.Generator) -> float:
        _, pooled = moments.pooled()
        variance = self.view.gaussian.variances(moments, self.active, pooled)[c]
        k = self.active[c]
        n = sum(moments.n)
        mean = (
            moments.mean[k]
            if moments.n[k]
            else sum(m * w / n for m, w in zip(moments.mean, moments.n, strict=True))
        )
        return float(random.normal(mean, math.sqrt(variance)))
