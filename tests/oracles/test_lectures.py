"""The lectures' own examples, with their figures."""

import math
from fractions import Fraction

import pytest
from sklearn.datasets import load_iris

from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
)
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Bernoulli, Binned, Gaussian
from streamnb.naive_bayes.event_models.smoothing import Beta, NoSmoothing
from streamnb.naive_bayes.features.readers import Categories, Flags, Numbers
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.moments import Moments

LIKES = ["shortbread", "lager", "whiskey", "porridge", "football"]
ENGLISH = list(zip("011100", "001110", "110000", "110001", "101010", strict=True))
SCOTS = list(zip("1111111", "0111100", "0010011", "1011101", "1100100", strict=True))


def _answers(person: tuple[str, ...] | str) -> dict[str, int]:
    return {like: int(answer) for like, answer in zip(LIKES, person, strict=True)}


def _nations(model: BernoulliNB) -> BernoulliNB:
    for people, nation in ((ENGLISH, "English"), (SCOTS, "Scottish")):
        for person in people:
            model.learn_one(_answers(person), nation)
    return model


def test_scots_and_english_by_maximum_likelihood() -> None:
    """The fractions of people; 0.8076; and exactly 0 for a Scot who dislikes shortbread."""
    model = _nations(BernoulliNB(alpha=0))
    english = [model.p_feature_given_class(like, "English") for like in LIKES]
    scots = [model.p_feature_given_class(like, "Scottish") for like in LIKES]
    assert english == pytest.approx([1 / 2, 1 / 2, 1 / 3, 1 / 2, 1 / 2])
    assert scots == pytest.approx([1, 4 / 7, 3 / 7, 5 / 7, 3 / 7])
    assert [model.p_class("English"), model.p_class("Scottish")] == [6 / 13, 7 / 13]
    assert model.predict_proba_one(_answers("10110"))["Scottish"] == pytest.approx(0.8076, abs=5e-5)
    assert model.predict_proba_one(_answers("01111"))["Scottish"] == 0.0


@pytest.mark.parametrize("m", [Fraction(1, 2), Fraction(1), Fraction(5)])
def test_scots_and_english_with_a_pseudo_count_on_both_sides(m: Fraction) -> None:
    """Barber's ``(n1 + M) / (n1 + M + n0 + M)``: the second query is no longer impossible."""
    model = _nations(BernoulliNB(alpha=float(m)))
    joint = {}
    for nation, people in (("English", ENGLISH), ("Scottish", SCOTS)):
        p = Fraction(len(people), 13)
        for i, x in enumerate("01111"):
            n1 = sum(person[i] == "1" for person in people)
            theta = (n1 + m) / (len(people) + 2 * m)
            p *= theta if x == "1" else 1 - theta
        joint[nation] = p
    expected = float(joint["Scottish"] / sum(joint.values()))
    assert 0 < expected < 1
    assert model.predict_proba_one(_answers("01111"))["Scottish"] == pytest.approx(expected, rel=1e-12)


def test_a_coin_is_a_flag_or_a_word_where_nothing_is_missing() -> None:
    """Barber's attributes as flags, as words, and as one category each: one posterior."""
    words = _nations(BernoulliNB(alpha=1))
    flags = NaiveBayes([View("flags", Flags(), Bernoulli(Beta(1.0, 1.0)))])
    categories = CategoricalNB(alpha=1)
    for people, nation in ((ENGLISH, "English"), (SCOTS, "Scottish")):
        for person in people:
            flags.learn_one({like: bool(answer) for like, answer in _answers(person).items()}, nation)
            categories.learn_one(_answers(person), nation)
    for query in ("10110", "01111", "00000"):
        expected = words.predict_proba_one(_answers(query))
        x = {like: bool(answer) for like, answer in _answers(query).items()}
        assert flags.predict_proba_one(x) == pytest.approx(expected, rel=1e-12)
        assert categories.predict_proba_one(_answers(query)) == pytest.approx(expected, rel=1e-12)


def test_easysell() -> None:
    """Four radio stations, independent given age: young .95 .05 .02 .20, old .03 .82 .34 .92."""
    hears = {"young": [95, 5, 2, 20], "old": [3, 82, 34, 92]}
    model = NaiveBayes([View("radio", Flags(), Bernoulli(Beta(0.0, 0.0)))])
    for age, stations in hears.items():
        for i in range(100):
            model.learn_one({f"radio {k + 1}": i < n for k, n in enumerate(stations)}, age)
    heard = (True, False, False, True)
    joint = {
        age: math.prod(n / 100 if x else 1 - n / 100 for n, x in zip(stations, heard, strict=True))
        for age, stations in hears.items()
    }
    p = model.predict_proba_one({f"radio {k + 1}": x for k, x in enumerate(heard)})
    assert p["young"] == pytest.approx(joint["young"] / sum(joint.values()), rel=1e-12)
    without = model.predict_proba_one({"radio 1": True, "radio 3": None})
    assert without["young"] == pytest.approx(
        0.95 / 0.98, rel=1e-12
    )  # a missing attribute leaves its factor out


def test_neurips_is_0_over_0_until_it_is_smoothed() -> None:
    """Maximum likelihood gives 0 in both classes; add one gives 1/(n_c + 2), and 1/(N_c + |V|) to a draw."""
    corpus = [("win money", "spam"), ("win win prize", "spam"), ("lunch at noon", "ham")]
    for alpha in (0.0, 1.0):
        coins = BernoulliNB(alpha, unknown="smooth")
        draws = MultinomialNB(alpha, unknown="smooth")
        for text, label in corpus:
            coins.learn_one(text, label)
            draws.learn_one(text, label)
        if alpha == 0.0:
            assert coins.p_feature_given_class("neurips", "spam") == 0.0
            assert draws.predict_proba_one("neurips") == pytest.approx({"spam": 2 / 3, "ham": 1 / 3})
            assert coins.predict_proba_one("neurips") == pytest.approx({"spam": 2 / 3, "ham": 1 / 3})
        else:
            assert [coins.p_feature_given_class("neurips", y) for y in ("spam", "ham")] == [1 / 4, 1 / 3]
            assert [draws.p_feature_given_class("neurips", y) for y in ("spam", "ham")] == [1 / 11, 1 / 9]
            assert sum(coins.predict_proba_one("neurips").values()) == pytest.approx(1.0)


def test_add_one_is_four_more_messages() -> None:
    """(all zeros, 0), (all zeros, 1), (all ones, 0), (all ones, 1), and then maximum likelihood."""
    corpus = [({"a": 1, "b": 0}, "spam"), ({"a": 1, "b": 1}, "spam"), ({"a": 0, "b": 1}, "ham")]
    smoothed, appended = BernoulliNB(alpha=1), BernoulliNB(alpha=0)
    for x, y in [*corpus, *(({"a": i, "b": i}, y) for i in (0, 1) for y in ("spam", "ham"))]:
        appended.learn_one(x, y)
    for x, y in corpus:
        smoothed.learn_one(x, y)
    for word in "ab":
        for y in ("spam", "ham"):
            assert smoothed.p_feature_given_class(word, y) == appended.p_feature_given_class(word, y)


def test_the_most_probable_coin_under_a_beta_density() -> None:
    """Beta(A, B) as a density is ``Beta(A - 1, B - 1)`` as pseudo-counts."""
    A, B = 3.0, 2.0
    model = BernoulliNB(smoothing=Beta(A - 1, B - 1))
    for x in (1, 1, 0, 1):
        model.learn_one({"heads": x}, "coin")
    assert model.p_feature_given_class("heads", "coin") == (A - 1 + 3) / (A - 1 + B - 1 + 4)


def test_age_in_three_groups_is_one_field_of_three_states() -> None:
    """As three flags it would be counted three times over: they depend on each other given the class."""
    ages = [("young", "yes")] * 6 + [("middle", "yes")] * 2 + [("old", "no")] * 5 + [("middle", "no")] * 3
    category, flags = CategoricalNB(alpha=0), NaiveBayes([View("f", Flags(), Bernoulli(Beta(0.0, 0.0)))])
    for age, answer in ages:
        category.learn_one({"age": age}, answer)
        flags.learn_one({group: age == group for group in ("young", "middle", "old")}, answer)
    right = 2 / 5  # of the five in the middle, two said yes
    assert category.predict_proba_one({"age": "middle"})["yes"] == pytest.approx(right)
    wrong = flags.predict_proba_one({"young": False, "middle": True, "old": False})["yes"]
    assert abs(wrong - right) > 0.05


def test_two_to_the_fifty_thousand() -> None:
    """Parameters of 50,000 words that are there or not, a class: with the naive assumption, and without."""
    model = BernoulliNB()
    model.learn_one({f"w{i}": 1 for i in range(50_000)}, "spam")
    assert model.n_parameters() == 50_000
    assert model.n_parameters(naive=False) == 2**50_000 - 1
    model.learn_one({}, "ham")
    assert model.n_parameters() == 2 * 50_000 + 1
    assert model.n_parameters(naive=False) == 2 * (2**50_000 - 1) + 1


def test_parameters_of_the_other_models() -> None:
    """A draw, a field, a number."""
    draws, fields = MultinomialNB(), CategoricalNB()
    for model in (draws, fields):
        model.learn_one({"a": 1, "b": 2}, "x")
        model.learn_one({"a": 3, "b": 4}, "y")
    assert draws.n_parameters() == 2 * (2 - 1) + 1
    with pytest.raises(ValueError, match="any length"):
        draws.n_parameters(naive=False)
    assert fields.n_parameters() == 2 * ((2 - 1) + (2 - 1)) + 1
    assert fields.n_parameters(naive=False) == 2 * (2 * 2 - 1) + 1
    for variance, naive, full in (("class", 4 + 4, 4 + 6), ("shared", 4 + 2, 4 + 3), (1.0, 4, 4)):
        numbers = GaussianNB(variance)  # type: ignore[arg-type]
        numbers.learn_one({"a": 1, "b": 2}, "x")
        numbers.learn_one({"a": 3, "b": 4}, "y")
        assert (numbers.n_parameters(), numbers.n_parameters(naive=False)) == (naive + 1, full + 1)


def test_a_die_of_k_sides() -> None:
    """``(lambda + count) / (K lambda + N)``."""
    rolls = [1, 1, 2, 3, 3, 3, 4, 5, 6, 6]
    model = CategoricalNB(alpha=0.5)
    for roll in rolls:
        model.learn_one({"die": roll}, "die")
    for side in range(1, 7):
        expected = (0.5 + rolls.count(side)) / (6 * 0.5 + 10)
        assert model.p_feature_given_class("die", side, "die") == pytest.approx(expected)
    fair = NaiveBayes([View("die", Categories("die"))])
    assert fair.predict_one({"die": {"side": 1}}) is None


def _iris() -> tuple[list[dict[str, float]], list[str]]:
    data = load_iris()
    names = [str(name) for name in data.feature_names]
    rows = [dict(zip(names, row, strict=True)) for row in data.data.tolist()]
    return rows, [str(data.target_names[i]) for i in data.target]


@pytest.mark.parametrize(("variance", "resubstituted", "left_out"), [("class", 6, 7), ("shared", 6, 6)])
def test_iris(variance: str, resubstituted: int, left_out: int) -> None:
    """Errors on the flowers it learned, and on each flower unlearned before it is asked."""
    rows, kinds = _iris()
    model = GaussianNB(variance, pseudo_observations=0.0)  # type: ignore[arg-type]
    model.learn_many(rows, kinds)
    assert sum(model.predict_one(x) != y for x, y in zip(rows, kinds, strict=True)) == resubstituted
    errors = 0
    for x, y in zip(rows, kinds, strict=True):
        model.unlearn_one(x, y)
        errors += model.predict_one(x) != y
        model.learn_one(x, y)
    assert errors == left_out


def test_a_shared_variance_makes_the_boundary_straight() -> None:
    """Two flowers: ``w = (mu_a - mu_b) / var``, and the logistic form of the posterior."""
    rows, kinds = _iris()
    model = GaussianNB("shared", pseudo_observations=0.0)
    for x, y in zip(rows, kinds, strict=True):
        if y != "setosa":
            model.learn_one(x, y)
    intercept, weights = model.linear_weights(("versicolor", "virginica"))
    for x in rows[50::7]:
        theta_x = intercept + math.fsum(weights[name] * value for name, value in x.items())
        assert model.predict_proba_one(x)["versicolor"] == pytest.approx(
            1 / (1 + math.exp(-theta_x)), rel=1e-9
        )


@pytest.mark.parametrize("variance", ["class", "shared", 2.0])
def test_the_normal_of_a_class_is_the_formula(variance: object) -> None:
    """Under maximum likelihood, whichever variance: ``-ln(var)/2 - (x - mu)^2 / (2 var)``."""
    moments = Moments(2)
    for c, numbers in enumerate(([1.0, 3.0, 5.0], [10.0, 12.0])):
        for x in numbers:
            moments.add(x, c)
    variances = {"class": (8 / 3, 1.0), "shared": (10 / 5, 10 / 5)}.get(str(variance), (2.0, 2.0))
    z = Gaussian(0.0, variance).log_density(4.0, moments, [0, 1])  # type: ignore[arg-type]
    for found, mean, var in zip(z, (3.0, 11.0), variances, strict=True):
        assert found == pytest.approx(-math.log(var) / 2 - (4.0 - mean) ** 2 / (2 * var), rel=1e-12)


def test_the_generative_story_comes_back() -> None:
    """A model that learns what another one drew believes much the same."""
    model = _nations(BernoulliNB(alpha=1))
    again = BernoulliNB(alpha=1)
    for x, y in model.sample(20_000, seed=3):
        again.learn_one(x, y)
    for nation in ("English", "Scottish"):
        assert again.p_class(nation) == pytest.approx(model.p_class(nation), abs=0.02)
        for like in LIKES:
            assert again.p_feature_given_class(like, nation) == pytest.approx(
                model.p_feature_given_class(like, nation), abs=0.02
            )


def test_a_spike_is_defined() -> None:
    """Maximum likelihood of a class that is always at 5: it wins there, and nowhere else."""
    model = GaussianNB(pseudo_observations=0.0)
    for x in (5.0, 5.0, 5.0):
        model.learn_one({"x": x}, "spike")
    for x in (4.0, 5.0, 6.0):
        model.learn_one({"x": x}, "wide")
    assert model.predict_one({"x": 5.0}) == "spike"
    assert model.predict_one({"x": 5.1}) == "wide"
    assert NoSmoothing().pseudo_count(0.0, 0.0, 0) == 0.0


AREAS = (400.0, 800.0, 1200.0, 1600.0)
HOUSES = [
    (350.0, "sold"),
    (890.0, "sold"),
    (1000.0, "sold"),
    (1100.0, "kept"),
    (2000.0, "kept"),
    (1700.0, "kept"),
]


def test_a_house_of_890_square_feet_is_in_the_third_range() -> None:
    """<400, 400-800, 800-1200, 1200-1600, >1600; the ranges are values of one field."""
    model = NaiveBayes([View("area", Numbers(), Binned(edges=AREAS))])
    ranges = CategoricalNB()
    for area, label in HOUSES:
        model.learn_one({"area": area}, label)
        ranges.learn_one({"area": sum(area >= edge for edge in AREAS) + 1}, label)
    explanation = model.explain_one({"area": 890.0}, ("sold", "kept"))
    assert explanation is not None
    assert [part.token for part in explanation.tokens] == ["area 800-1200"]
    # two of three sold, one of three kept, five ranges (the categories have met three of them)
    assert explanation.total == pytest.approx(
        math.log((2 + 1) / (3 + 5)) - math.log((1 + 1) / (3 + 5)), rel=1e-12
    )
    assert ranges.p_feature_given_class("area", 3, "sold") == (2 + 1) / (3 + 3)


def test_ranges_may_be_learned_from_the_first_numbers() -> None:
    """They settle on quantiles, what waited is counted once, and then they stay."""
    model = NaiveBayes([View("area", Numbers(), Binned(bins=2, warm_up=6))])
    for area, label in HOUSES[:5]:
        model.learn_one({"area": area}, label)
        assert model.predict_proba_one({"area": 350.0}) == model.predict_proba_one({})
    model.learn_one({"area": HOUSES[5][0]}, HOUSES[5][1])
    assert model.predict_one({"area": 350.0}) == "sold"
    assert model.predict_one({"area": 5000.0}) == "kept"
    restored = NaiveBayes([View("area", Numbers(), Binned(bins=2, warm_up=6))])
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    assert restored.digest() == model.digest()


def test_ranges_beat_a_normal_where_numbers_are_not_normal() -> None:
    """One class at both ends, the other in the middle with outliers: only the ranges see it."""
    numbers, ranges = GaussianNB(), NaiveBayes([View("n", Numbers(), Binned(edges=(-8.0, -2.0, 2.0, 8.0)))])
    for i in range(300):
        x, y = (
            ((-1) ** i * 5.0, "ends")
            if i % 3
            else ((i % 7 - 3) / 3 + (60.0 if i % 30 == 0 else 0.0), "middle")
        )
        numbers.learn_one({"x": x}, y)
        ranges.learn_one({"x": x}, y)
    assert ranges.predict_one({"x": 0.0}) == "middle"
    assert ranges.predict_one({"x": 5.0}) == "ends"
    assert numbers.predict_one({"x": 0.0}) != "middle"


def test_the_discriminant_is_logistic_regressions_form() -> None:
    """``1 / (1 + exp(-theta.x))`` with one covariance; and a coordinate that is missing is marginalised."""
    rows, kinds = _iris()
    model = GaussianDiscriminant()
    for x, y in zip(rows, kinds, strict=True):
        if y != "setosa":
            model.learn_one(x, y)
    intercept, weights = model.linear_weights(("virginica", "versicolor"))
    for x in rows[50::7]:
        theta_x = intercept + math.fsum(weights[name] * value for name, value in x.items())
        assert model.predict_proba_one(x)["virginica"] == pytest.approx(
            1 / (1 + math.exp(-theta_x)), rel=1e-9
        )
    alone, one = GaussianDiscriminant(), "petal length (cm)"
    for x, y in zip(rows, kinds, strict=True):
        if y != "setosa":
            alone.learn_one({one: x[one]}, y)
    for x in rows[50::7]:
        assert model.predict_proba_one({one: x[one]}) == pytest.approx(
            alone.predict_proba_one({one: x[one]}), rel=1e-9
        )


@pytest.mark.parametrize(("covariance", "errors"), [("shared", 3), ("class", 3)])
def test_iris_with_covariances(covariance: str, errors: int) -> None:
    """Errors on the flowers it learned, as linear and quadratic discriminant analysis have them."""
    rows, kinds = _iris()
    model = GaussianDiscriminant(covariance)  # type: ignore[arg-type]
    model.learn_many(rows, kinds)
    assert sum(model.predict_one(x) != y for x, y in zip(rows, kinds, strict=True)) == errors
