"""The calibrated head, beside a second one written from its specification alone, and its laws."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Batch
from streamnb.base.frozen import Section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.features.readers import Category, CharacterGrams, Ends, Number, WordPairs, Words
from streamnb.naive_bayes.model.view import TEXT_ONLY, View
from streamnb.naive_bayes.posterior.calibrated_head import CalibratedHead
from streamnb.naive_bayes.posterior.odds import log_odds, never_labelled, softmax
from streamnb.naive_bayes.statistics.steady_normal import SteadyNormal, centred_and_clipped

# ---- the second implementation: dictionaries, new sums for every message, nothing shared with ours

Message = dict[str, object]
Phi = dict[object, dict[str, float]]


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def _grams(text: str) -> list[str]:
    found = []
    for word in re.findall(r"\w+|[^\w\s]", text.lower()[:3000]):
        padded = f" {word} "
        found += [padded[i : i + 4] for i in range(len(padded) - 3)] or [padded]
    return found


READ: dict[str, tuple[Callable[[str], list[str]], float]] = {
    "words": (_tokens, 0.1),
    "pairs": (lambda text: [f"{a} {b}" for a, b in pairwise(_tokens(text))], 0.03),
    "characters": (_grams, 0.1),
    "ends": (lambda text: ["h" + t for t in _tokens(text)[:8]] + ["t" + t for t in _tokens(text)[-8:]], 0.1),
}


class Reference:
    """The specification's formulas, one after another."""

    def __init__(
        self, views: Sequence[str], others: Sequence[str], declared: Sequence[str], *, trust: bool
    ) -> None:
        self.views, self.others, self.trust = views, others, trust
        self.v: dict[tuple[str, str], tuple[float, float]] = {}  # of each token: its trust, and G
        self.n: dict[str, dict[str, dict[str, float]]] = {view: {} for view in [*views, "category"]}
        self.D = dict.fromkeys(declared, 0.0)
        self.seen: dict[str, list[tuple[float, str, float]]] = {"length": [], "unknown": [], "number": []}
        start = {"x": 0.7 / len(views), "q": 0.0, "x'": 0.0, "q'": 0.0}
        self.w: dict[object, float] = {(view, twin): w for view in views for twin, w in start.items()}
        self.w |= dict.fromkeys(["length", "unknown", *others], 0.5)
        if trust:
            self.w["trust"] = 1.0
        self.b: dict[str, float] = defaultdict(float)
        self.G: dict[object, float] = defaultdict(lambda: 1.0)
        self.eta, self.G_eta = math.log(0.01 / 0.99), 0.1

    def features_of(self, view: str, message: Message) -> dict[str, float]:
        """Distinct tokens and their f."""
        tokens = READ[view][0](str(message["text"]))
        return {t: round(256 * math.log(1 + tokens.count(t))) / 256 for t in tokens}

    def text_evidence(self, view: str, message: Message, S: list[str]) -> Phi:
        """EVIDENCE: x, q and their twins."""
        n, a = self.n[view], READ[view][1]
        N_c = {c: sum(row.get(c, 0.0) for row in n.values()) for c in S}
        N, V = sum(N_c.values()), len(n) + 1
        known = {t: f for t, f in self.features_of(view, message).items() if t in n}
        Z = (1 + sum(known.values())) ** 0.7
        phi: Phi = {(view, twin): dict.fromkeys(S, 0.0) for twin in ("x", "q", "x'", "q'")}
        for t, f in known.items():
            n_t = sum(n[t].values())
            d = {}
            for c in S:
                mine = n[t].get(c, 0.0)
                d[c] = math.log((mine + a) / (N_c[c] + a * V))
                d[c] -= math.log((n_t - mine + a) / (N - N_c[c] + a * V))
            mean = sum(d.values()) / len(S)
            h = f * n_t / (n_t + 15)
            for c in S:
                d_c = d[c] - mean
                phi[view, "x"][c] += f * d_c / Z
                phi[view, "q"][c] += f * d_c * abs(d_c) / Z / 4
                phi[view, "x'"][c] += h * d_c / Z
                phi[view, "q'"][c] += h * d_c * abs(d_c) / Z / 2
            self.e[view, t] = {c: f * (d[c] - mean) * n_t / (n_t + 15) for c in S}
        return phi

    def trust_evidence(self, message: Message, S: list[str]) -> dict[str, float]:
        """TRUST: one feature for all text views together."""
        Q = sum(f * f for view in self.views for f in self.features_of(view, message).values())
        self.damped = Q**-0.35 if Q else 0.0
        T = dict.fromkeys(S, 0.0)
        for token, e in self.e.items():
            for c in S:
                T[c] += self.damped * self.v.get(token, (0.0, 0.0))[0] * e[c]
        return T

    def meta_values(self, message: Message) -> dict[str, float]:
        """What META measures, to 1/1024."""
        first = self.views[0]
        distinct = self.features_of(first, message)
        U, L = sum(t not in self.n[first] for t in distinct), len(distinct)
        values = {
            "length": math.log(1 + len(str(message["text"]))),
            "unknown": math.sqrt((U + 0.5) / (L + 1)),
        }
        return {title: round(1024 * x) / 1024 for title, x in values.items()}

    def meta_evidence(self, title: str, x: float, v0: float, S: list[str]) -> dict[str, float]:
        """META: g_c, centred and clipped."""
        sums = {c: [0.0, 0.0, 0.0] for c in S}
        for value, c, g in self.seen[title]:
            for i, power in enumerate((1.0, value, value * value)):
                sums[c][i] += g * power
        n0, M = 20.0, sum(n for n, _, _ in sums.values())
        m0 = sum(s for _, s, _ in sums.values()) / M
        vv = max((sum(ss for _, _, ss in sums.values()) - M * m0**2 + n0 * v0) / (M + n0), v0)
        z = {}
        for c, (n, s, ss) in sums.items():
            mu = (s + n0 * m0) / (n + n0)
            var = max((ss - 2 * mu * s + n * mu**2 + n0 * (vv + (m0 - mu) ** 2)) / (n + n0), v0)
            z[c] = -math.log(var) / 2 - (x - mu) ** 2 / (2 * var)
        return _centred(z)

    def category_evidence(self, value: object, S: list[str]) -> dict[str, float]:
        """Laplace 1 over the values known, an unknown one skipped."""
        rows = self.n["category"]
        if value not in rows:
            return dict.fromkeys(S, 0.0)
        N_c = {c: sum(row.get(c, 0.0) for row in rows.values()) for c in S}
        return _centred({c: math.log((rows[str(value)].get(c, 0.0) + 1) / (N_c[c] + len(rows))) for c in S})

    def number_evidence(self, x: object, S: list[str]) -> dict[str, float]:
        """A normal a class and one pseudo-observation of the pooled variance."""
        everything = [(value, g) for value, _, g in self.seen["number"]]
        n, mean, squares = _summary(everything)
        if x is None or squares == 0:
            return dict.fromkeys(S, 0.0)
        z = {}
        for c in S:
            n_c, mean_c, squares_c = _summary([(value, g) for value, y, g in self.seen["number"] if y == c])
            var = (squares_c + squares / n) / (n_c + 1)
            z[c] = -math.log(var) / 2 - (float(str(x)) - (mean_c if n_c else mean)) ** 2 / (2 * var)
        return _centred(z)

    def score(self, message: Message) -> dict[str, float]:
        """POSTERIOR."""
        self.phi: Phi = {}
        self.e: dict[tuple[str, str], dict[str, float]] = {}  # f times the shrunk log odds of known tokens
        self.S = S = [c for c, d in self.D.items() if d > 0]
        C, D = len(self.D), sum(self.D.values())
        if not S:
            return dict.fromkeys(self.D, 1 / C) if C else {}
        for view in self.views:
            self.phi |= self.text_evidence(view, message, S)
        meta = self.meta_values(message)
        self.phi["length"] = self.meta_evidence("length", meta["length"], 0.25, S)
        self.phi["unknown"] = self.meta_evidence("unknown", meta["unknown"], 0.04, S)
        if "category" in self.others:
            self.phi["category"] = self.category_evidence(message["category"], S)
        if "number" in self.others:
            self.phi["number"] = self.number_evidence(message["number"], S)
        if self.trust:
            self.phi["trust"] = self.trust_evidence(message, S)
        u = {c: self.b[c] + sum(w * self.phi[i][c] for i, w in self.w.items()) for c in S}
        total = sum(math.exp(u[c] - max(u.values())) for c in S)
        self.s = {c: math.exp(u[c] - max(u.values())) / total for c in S}
        self.eps = 1 / (1 + math.exp(-self.eta))
        M_s = 1 - (C - len(S)) / (D + C)
        p = {c: M_s * ((1 - self.eps) * self.s[c] + self.eps / len(S)) for c in S}
        return {c: p.get(c, 1 / (D + C)) for c in self.D}

    def learn(self, message: Message, y: str, g: float) -> None:
        """After `score` of the same message."""
        S = self.S
        if len(S) >= 2 and self.D.get(y, 0.0) > 0:
            P_y = (1 - self.eps) * self.s[y] + self.eps / len(S)
            rho = (1 - self.eps) * self.s[y] / P_y
            r = {c: min(g, 1.0) * rho * (self.s[c] - (c == y)) for c in S}
            for i in self.w:
                h = sum(r[c] * self.phi[i][c] for c in S)
                self.G[i] += h * h
                if isinstance(i, tuple):  # of a text view
                    self.w[i] -= 0.1 / math.sqrt(len(self.views)) * h / math.sqrt(self.G[i])
                    self.w[i] = max(self.w[i], 0.0)
                elif i == "trust":
                    self.w[i] = max(self.w[i] - 0.15 * h / math.sqrt(self.G[i]), 0.0)
                else:
                    self.w[i] -= 0.3 * h / math.sqrt(self.G[i])
            unexpected = sum(r[c] ** 2 for c in S) >= 0.01 * min(g, 1.0) ** 2
            for token, e in self.e.items() if self.trust and unexpected else ():
                h = self.damped * sum(r[c] * e[c] for c in S)
                v, G = self.v.get(token, (0.0, 0.0))
                v = min(max(v - 0.3 * h / math.sqrt(0.05 + G + h * h), -1.0), 2.0)
                self.v[token] = float(np.float32(v)), float(np.float32(G + h * h))
            for c in S:
                self.G["b", c] += r[c] ** 2
                self.b[c] -= 0.5 * r[c] / math.sqrt(self.G["b", c])
            h = min(g, 1.0) * (self.s[y] - 1 / len(S)) / P_y * self.eps * (1 - self.eps)
            self.G_eta += h * h
            self.eta = min(max(self.eta - h / math.sqrt(self.G_eta), -9.0), -0.5)
        meta = self.meta_values(message)
        for view in self.views:
            for t, f in self.features_of(view, message).items():
                row = self.n[view].setdefault(t, {})
                row[y] = row.get(y, 0.0) + g * f
        if "category" in self.others and message["category"] is not None:
            row = self.n["category"].setdefault(str(message["category"]), {})
            row[y] = row.get(y, 0.0) + g
        if "number" in self.others and message["number"] is not None:
            self.seen["number"].append((float(str(message["number"])), y, g))
        self.D[y] = self.D.get(y, 0.0) + g
        for title, x in meta.items():
            self.seen[title].append((x, y, g))


def _centred(z: dict[str, float]) -> dict[str, float]:
    mean = sum(z.values()) / len(z)
    return {c: min(max(value - mean, -2.0), 2.0) for c, value in z.items()}


def _summary(numbers: list[tuple[float, float]]) -> tuple[float, float, float]:
    n = sum(g for _, g in numbers)
    mean = sum(g * x for x, g in numbers) / n if n else 0.0
    return n, mean, sum(g * (x - mean) ** 2 for x, g in numbers)


OURS = {
    "words": View("words", Words()),
    "pairs": View("pairs", WordPairs()),
    "characters": View("characters", CharacterGrams()),
    "ends": View("ends", Ends()),
    "category": View("category", Category("category")),
    "number": View("number", Number("number")),
}
VOCABULARY = {
    "ham": "lunch noon meeting draft the a , . thanks review Train see you",
    "spam": "FREE cash win ! ! £ 1000 click the a now prize txt 80082",
    "work": "invoice ticket build red the a , ( ) merge branch 42 review",
}


def _messages(
    classes: Sequence[str], n: int, seed: int, weighted: bool
) -> list[tuple[Message, str | None, float]]:
    """Messages of 0 to 30 words, a tenth with a wrong label or none; the last class comes half-way."""
    random = Random(seed)
    found: list[tuple[Message, str | None, float]] = []
    for i in range(n):
        kind = random.choice(classes if i > n // 2 else classes[:-1] or classes)
        words = random.choices(
            VOCABULARY[kind] + VOCABULARY["ham"][:4], k=random.choice([0, 1, 3, 8, 15, 30])
        )
        words += [f"name{random.randrange(300)}"] * random.choice([0, 0, 1, 4])
        label: str | None = random.choice(classes) if random.random() < 0.1 and i > n // 2 else kind
        message: Message = {
            "text": " ".join(words),
            "category": random.choice([kind, "other", "news", None]),
            "number": random.choice([None, random.gauss(len(kind), 2.0)]),
        }
        weight = random.choice([1.0, 0.25, 1 / 256, 3.0, 100.0]) if weighted else 1.0
        found.append((message, None if random.random() < 0.05 else label, weight))
    return found


@pytest.mark.parametrize(("seed", "trust"), [(1, True), (2, True), (1, False)])
@pytest.mark.parametrize(
    ("classes", "views", "others", "declared", "weighted"),
    [
        (["ham", "spam"], ["words"], [], [], False),
        (["ham", "spam"], ["words", "pairs", "characters", "ends"], [], [], False),
        (["spam", "ham", "work"], ["words"], [], [], False),
        (["ham", "spam", "work"], ["pairs", "words"], [], ["ham", "spam", "never"], False),
        (["ham", "spam"], ["words"], [], [], True),
        (["work", "ham", "spam"], ["words", "ends"], ["category", "number"], ["spam"], True),
        (["ham", "spam"], ["characters"], ["number"], [], False),
    ],
)
def test_posteriors_are_the_specifications(
    classes: list[str],
    views: list[str],
    others: list[str],
    declared: list[str],
    weighted: bool,
    seed: int,
    trust: bool,
) -> None:
    """Equal to 1e-12 over 250 messages: 2 and 3 classes, late ones, declared ones, weights, mixed views."""
    model = NaiveBayes([OURS[name] for name in [*views, *others]], classes=declared, trust=trust)
    reference = Reference(views, others, declared, trust=trust)
    for message, label, weight in _messages(classes, 250, seed, weighted):
        expected = reference.score(message)
        n_classes = len(model.classes_)
        scores = model.step(Batch({name: [value] for name, value in message.items()}, [label], [weight]))
        found = dict(zip(model.classes_[:n_classes], scores.posterior[0].tolist(), strict=False))
        assert found == pytest.approx(expected, abs=1e-12)
        if label is not None:
            reference.learn(message, label, weight)
    assert model.state.head is not None
    assert model.state.head.eta == pytest.approx(reference.eta, rel=1e-9)
    assert max(reference.s.values()) > 0.5
    assert any(v for v, _ in reference.v.values()) == trust


# ---- classes never labelled


def test_before_any_label_there_is_no_posterior_but_of_declared_classes() -> None:
    """Nothing declared: nothing said. Declared: equal shares."""
    assert NaiveBayes(TEXT_ONLY).predict_proba_one({"text": "hi"}) == {}
    assert NaiveBayes(TEXT_ONLY, classes=["a", "b"]).predict_proba_one({"text": "hi"}) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("head", ["calibrated", "product"])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_a_declared_class_never_labelled_weighs_one_message(head: str, n: int) -> None:
    """``p = 1 / (D + C)``, and the others share the rest."""
    model = NaiveBayes(TEXT_ONLY, classes=["never", "ham", "spam"], head=head)  # type: ignore[arg-type]
    for i in range(n):
        model.learn_one({"text": "free cash" if i % 2 else "lunch"}, "spam" if i % 2 else "ham")
    p = model.predict_proba_one({"text": "free lunch"})
    others = 1 if n == 1 else 0
    assert p["never"] == 1 / (n + 3)
    assert p["spam"] == pytest.approx(1 / (n + 3)) if others else p["spam"] > 1 / (n + 3)
    assert math.fsum(p.values()) == pytest.approx(1.0, abs=1e-12)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 2), st.floats(0, 1e9)
)
def test_spreading_over_the_never_labelled_sums_to_one(
    p: list[float], declared: int, unlearned: int, d: float
) -> None:
    """Whatever the posterior of the active classes; a class that was unlearned gets nothing."""
    total = sum(p)
    active = [value / total for value in p] if total > 0 else [1 / len(p)] * len(p)
    end = len(p) + declared
    spread = never_labelled(active, range(len(p)), range(len(p), end), end + unlearned, d)
    assert math.fsum(spread) == pytest.approx(1.0, abs=1e-12)
    assert spread[len(p) : end] == pytest.approx([1 / (d + len(p) + declared)] * declared, rel=1e-15)
    assert spread[end:] == [0.0] * unlearned


# ---- softmax and log odds

U = st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=6)


@given(U)
def test_softmax_sums_to_one_and_keeps_order(u: list[float]) -> None:
    """Without overflow, at any distance."""
    p = softmax(u)
    assert math.fsum(p) == pytest.approx(1.0, abs=1e-12)
    for a, b in pairwise(sorted(zip(u, p, strict=True))):
        assert a[1] <= b[1]


@given(U)
def test_log_odds_are_finite_and_agree_with_p(u: list[float]) -> None:
    """T17: past where p rounds to 1 they go on."""
    for p, odds in zip(softmax(u), log_odds(u), strict=True):
        assert math.isfinite(odds)
        if 1e-6 < p < 1 - 1e-6:
            assert odds == pytest.approx(math.log(p) - math.log1p(-p), abs=1e-8)


def test_infinite_joints_are_defined() -> None:
    """Maximum likelihood may leave one class, or none."""
    assert softmax([-math.inf, 0.0]) == [0.0, 1.0]
    assert log_odds([-math.inf, 0.0]) == [-math.inf, math.inf]
    assert softmax([-math.inf, -math.inf]) == [0.5, 0.5]
    assert softmax([]) == []
    assert log_odds([3.0]) == [math.inf]


# ---- the gradient is bounded

PHI = st.integers(2, 4).flatmap(
    lambda s: st.lists(st.lists(st.floats(-1e4, 1e4), min_size=s, max_size=s), min_size=6, max_size=6)
)


@given(st.lists(st.tuples(PHI, st.integers(0, 3), st.floats(1e-9, 1e9)), max_size=10))
def test_no_message_moves_the_head_far(steps: list[tuple[list[list[float]], int, float]]) -> None:
    """``|r_c| <= 1``: a weight moves by its rate at most, an offset by 1/2; eps keeps its bounds."""
    head = CalibratedHead(1, 0)
    for _ in range(4):
        head.add_class()
    for phi, y, weight in steps:
        active = list(range(len(phi[0])))
        before = list(head.weights), list(head.offsets), list(head.offset_squares)
        opinion = head.opinion(phi, active)
        assert math.fsum(opinion.posterior) == pytest.approx(1.0, abs=1e-12)
        assert min(opinion.posterior) >= opinion.eps / len(active) * (1 - 1e-12)
        errors = head.errors(opinion, y % len(active), weight)
        head.learn(opinion, errors, phi, active, y % len(active), weight)
        moved = [abs(w - w0) for w, w0 in zip(head.weights, before[0], strict=True)]
        assert max(moved[:4]) <= 0.1
        assert max(moved[4:]) <= 0.3
        assert min(head.weights[:4]) >= 0.0
        assert all(abs(b - b0) <= 0.5 for b, b0 in zip(head.offsets, before[1], strict=True))
        assert all(0 <= g - g0 <= 1 + 1e-9 for g, g0 in zip(head.offset_squares, before[2], strict=True))
        assert -9.0 <= head.eta <= -0.5
        assert all(map(math.isfinite, [*head.weights, *head.weight_squares, head.eta, head.eta_squares]))


@pytest.mark.parametrize(("eta", "clean"), [(-8.99, True), (-0.51, False)])
def test_eps_stays_within_its_bounds(eta: float, clean: bool) -> None:
    """1.2e-4 to 0.38, however clean or wrong the labels of a stream are."""
    head = _head(1, 0)
    head.eta = eta
    phi = [[30.0, -30.0], *([[0.0, 0.0]] * 5)]
    for _ in range(1000):
        opinion = head.opinion(phi, [0, 1])
        y = 0 if (opinion.u[0] > opinion.u[1]) == clean else 1
        head.learn(opinion, head.errors(opinion, y, 1.0), phi, [0, 1], y, 1.0)
    assert head.eta == (-9.0 if clean else -0.5)


# ---- the head's own Gaussians


def test_meta_evidence_leans_and_does_not_decide() -> None:
    """Centred, and within 2 whatever the numbers."""
    normal = SteadyNormal(0.25)
    normal.add_class()
    normal.add_class()
    for _ in range(1000):
        normal.add(0.0, 0, 1.0)
        normal.add(100.0, 1, 1.0)
    assert normal.evidence(100.0, [0, 1]) == [-2.0, 2.0]
    assert normal.evidence(50.0, [0, 1]) == pytest.approx([0.0, 0.0], abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(0, 1)), max_size=30), st.randoms(use_true_random=False)
)
def test_meta_sums_do_not_know_their_order(numbers: list[tuple[float, int]], random: Random) -> None:
    """Multiples of 1/1024, whose squares sum exactly."""
    normals = []
    for _ in range(2):
        normal = SteadyNormal(0.25)
        normal.add_class()
        normal.add_class()
        for x, c in numbers:
            normal.add(x, c, 1.0)
        normals.append(normal.freeze().tolist())
        random.shuffle(numbers)
    assert normals[0] == normals[1]


@given(st.lists(st.one_of(st.floats(-1e9, 1e9), st.just(-math.inf)), min_size=1, max_size=5))
def test_centring_clips_to_two(values: list[float]) -> None:
    """Minus infinity is the lower bound, and nothing if every class is there."""
    clipped = centred_and_clipped(values)
    assert all(-2.0 <= value <= 2.0 for value in clipped)
    if all(value == -math.inf for value in values):
        assert clipped == [0.0] * len(values)


# ---- merge, freeze, restore


def _head(seed: int, n: int, classes: int = 2) -> CalibratedHead:
    random = Random(seed)
    head = CalibratedHead(1, 0)
    for _ in range(classes):
        head.add_class()
    for _ in range(n):
        phi = [[random.gauss(0, 1) for _ in range(classes)] for _ in range(6)]
        y = random.randrange(classes)
        opinion = head.opinion(phi, range(classes))
        head.learn(opinion, head.errors(opinion, y, 1.0), phi, range(classes), y, 1.0)
        head.length.add(random.random(), y, 1.0)
        head.unknown_share.add(random.random(), y, 1.0)
    return head


def _numbers(head: CalibratedHead) -> list[float]:
    return [float(x) for array in head.freeze().values() for x in np.ravel(array)]


@pytest.mark.parametrize("n", [(10, 20, 30), (1, 1000, 7), (0, 5, 0)])
def test_merging_is_associative_to_rounding(n: tuple[int, int, int]) -> None:
    """Means weighted by labels learned; the Gaussian sums add exactly."""
    (a, b, c) = n
    left = _head(1, a)
    left.merge(_head(2, b), [0, 1], a, b)
    left.merge(_head(3, c), [0, 1], a + b, c)
    inner, right = _head(2, b), _head(1, a)
    inner.merge(_head(3, c), [0, 1], b, c)
    right.merge(inner, [0, 1], a, b + c)
    assert _numbers(left) == pytest.approx(_numbers(right), rel=1e-12, abs=1e-12)
    assert left.length.freeze().tolist() == right.length.freeze().tolist()


def test_merging_counts_a_missing_class_as_new() -> None:
    """Offset 0 and accumulator 1, in the share of the part that lacks it."""
    two, three = _head(1, 30), _head(2, 10, classes=3)
    offset, square = three.offsets[2], three.offset_squares[2]
    two.add_class()
    two.merge(three, [1, 0, 2], 30, 10)
    assert two.offsets[2] == pytest.approx(offset / 4)
    assert two.offset_squares[2] == pytest.approx((3 + square) / 4)


def test_merging_two_that_learned_nothing_is_nothing() -> None:
    """No division by no labels."""
    head = _head(1, 0)
    head.merge(_head(2, 0), [0, 1], 0, 0)
    assert _numbers(head) == _numbers(_head(3, 0))


def test_restoring_is_the_way_back() -> None:
    """Every number to the bit."""
    head, restored = _head(1, 50, 3), CalibratedHead(1, 0)
    for _ in range(3):
        restored.add_class()
    restored.restore(head.freeze(), 3)
    assert _numbers(restored) == _numbers(head)
    assert restored.digest("abc").hex() == head.digest("abc").hex()


Damage = Callable[[dict[str, Section]], object]
DAMAGES: dict[str, Damage] = {
    "no weights": lambda s: s.pop("head_weights"),
    "no offsets": lambda s: s.pop("head_offsets"),
    "no noise": lambda s: s.pop("head_noise"),
    "no lengths": lambda s: s.pop("length"),
    "no unknown share": lambda s: s.pop("unknown_share"),
    "weights of more views": lambda s: s.update(head_weights=np.ones((2, 10))),
    "offsets of more classes": lambda s: s.update(head_offsets=np.ones((2, 3))),
    "a weight that is not a number": lambda s: s["head_weights"].__setitem__((0, 0), np.nan),
    "an accumulator below its start": lambda s: s["head_weights"].__setitem__((1, 3), 0.5),
    "an offset's accumulator below its start": lambda s: s["head_offsets"].__setitem__((1, 0), 0.0),
    "a noise accumulator below its start": lambda s: s["head_noise"].__setitem__((1, 0), 0.05),
    "a noise share out of bounds": lambda s: s["head_noise"].__setitem__((0, 0), 0.0),
    "a negative length": lambda s: s["length"].__setitem__((1, 0), -1.0),
    "an infinite unknown share": lambda s: s["unknown_share"].__setitem__((2, 0), np.inf),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_a_head_is_refused(damage: Damage) -> None:
    """With a `SnapshotError`, and nothing was changed."""
    sections: dict[str, Section] = dict(_head(1, 50).freeze())
    damage(sections)
    head = _head(2, 20)
    before = _numbers(head)
    with pytest.raises(SnapshotError):
        head.restore(sections, 2)
    assert _numbers(head) == before
