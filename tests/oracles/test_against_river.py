"""Against river's naive Bayes: the same posteriors, unknown words included, in river's own pipelines.

Where we differ, on purpose:

====================================  ==============================  ====================================
input                                 river                           streamnb
====================================  ==============================  ====================================
only empty messages, then a word      ZeroDivisionError               the prior
alpha = 0, a word unseen in a class   ValueError: math domain error   minus infinity; 0/0 is the prior
alpha below 0                         accepted                        ValueError
`p_class` before anything was learned ZeroDivisionError               0
a negative count                      learned, and scored             ValueError, nothing learned
a bad count among good ones           half of the message is learned  ValueError, nothing learned
a word with count 0                   joins the vocabulary            absent
a label of None                       becomes a class                 no label: not learned
labels 1 and True                     one class                       ValueError
labels 1 in a batch                   become "1"                      stay 1
equal posteriors                      whichever class came first      the smallest label
Bernoulli's probabilities             1e-9 too large each             exact
Bernoulli, alpha = 0                  1e-9 for 0                      minus infinity; 0/0 is the prior
complement, an empty message          every class alike               the shares of the classes
a Gaussian's log density              floor of 1e-9                   none: far numbers keep their order
a Gaussian's variance                 of the class alone              with one pseudo-observation of all
a number or a count that is NaN       every posterior NaN             missing
batches                               other answers than one by one   the same, to the bit
an answer's columns                   as the classes were met         in the order of the labels
a number a class has never had         charged 1e-9                    the density of all classes
names 1 and "1"                       two features                    one, and not both in a message
====================================  ==============================  ====================================
"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, evaluate, feature_extraction, metrics, naive_bayes

from streamnb.cli.demo.mailbox import mailbox
from streamnb.naive_bayes.estimators import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

Metrics: Any = metrics
Theirs: Any = naive_bayes.MultinomialNB
Peers: Any = naive_bayes

COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5), max_size=5)
UNKNOWN = st.dictionaries(st.sampled_from("abcdefxyz"), st.integers(1, 5), max_size=6)
CORPUS = st.lists(st.tuples(COUNTS, st.sampled_from(["ham", "spam", "work"])), min_size=1, max_size=20)

Corpus = list[tuple[dict[str, int], str]]


def _both(corpus: Corpus, alpha: float) -> tuple[MultinomialNB, Any]:
    ours, theirs = MultinomialNB(alpha), Theirs(alpha)
    for counts, label in corpus:
        ours.learn_one(counts, label)
        theirs.learn_one(counts, label)
    return ours, theirs


@given(
    CORPUS.filter(lambda corpus: any(counts for counts, _ in corpus)),
    UNKNOWN,
    st.sampled_from([1.0, 0.1, 2.0]),
)
def test_posteriors_agree(corpus: Corpus, query: dict[str, int], alpha: float) -> None:
    """To 1e-10, on known and on unknown words alike: river's names give river's numbers."""
    ours, theirs = _both(corpus, alpha)
    assert ours.joint_log_likelihood(query) == pytest.approx(theirs.joint_log_likelihood(query), rel=1e-10)
    assert ours.predict_proba_one(query) == pytest.approx(
        theirs.predict_proba_one(query), rel=1e-10, abs=1e-10
    )
    shares, expected = ours.p_class_many(), theirs.p_class_many()
    assert list(shares.columns) == list(expected.columns)
    for label in theirs.class_counts:
        assert ours.p_class(label) == pytest.approx(theirs.p_class(label), rel=1e-12)
        assert shares[label].tolist() == pytest.approx(expected[label].tolist(), rel=1e-6)


@given(CORPUS.filter(lambda corpus: any(counts for counts, _ in corpus)), UNKNOWN)
def test_skipped_unknown_words_are_rivers_answer_without_them(corpus: Corpus, query: dict[str, int]) -> None:
    """``unknown="skip"`` is one keyword away, and leaves exactly those words out."""
    skip = MultinomialNB(unknown="skip")
    for counts, label in corpus:
        skip.learn_one(counts, label)
    _, theirs = _both(corpus, 1.0)
    known = {token for counts, _ in corpus for token in counts}
    rest = {token: n for token, n in query.items() if token in known}
    assert skip.predict_proba_one(query) == pytest.approx(
        theirs.predict_proba_one(rest), rel=1e-10, abs=1e-10
    )


@given(
    CORPUS.filter(lambda corpus: any(counts for counts, _ in corpus)),
    UNKNOWN.filter(bool),
    st.sampled_from([1.0, 0.1, 2.0]),
)
def test_complements_agree(corpus: Corpus, query: dict[str, int], alpha: float) -> None:
    """To 1e-10, unknown words included, wherever there is a word to go by."""
    ours, theirs = ComplementNB(alpha), Peers.ComplementNB(alpha)
    for counts, label in corpus:
        ours.learn_one(counts, label)
        theirs.learn_one(counts, label)
    joint = theirs.joint_log_likelihood(query)
    if any(joint.values()):
        assert ours.joint_log_likelihood(query) == pytest.approx(joint, rel=1e-10, abs=1e-10)
        expected = theirs.predict_proba_one(query)
        assert ours.predict_proba_one(query) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    for label in ("ham", "spam"):
        assert ours.class_counts[label] == theirs.class_counts[label]
        assert ours.class_totals[label] == theirs.class_totals[label]
    assert {word: dict(n) for word, n in ours.feature_counts.items()} == {
        word: dict(n) for word, n in theirs.feature_counts.items()
    }


@given(CORPUS, UNKNOWN, st.sampled_from([1.0, 0.5, 2.0]), st.sampled_from([0.0, 2.0]))
def test_coins_agree_but_for_what_river_adds(
    corpus: Corpus, query: dict[str, int], alpha: float, threshold: float
) -> None:
    """To 1e-6: river adds 1e-9 to each probability. Its unknown words are skipped, and so are ours."""
    ours, theirs = BernoulliNB(alpha, threshold), Peers.BernoulliNB(alpha, threshold)
    for counts, label in corpus:
        present = {word: n for word, n in counts.items() if n > threshold}  # 0 joins river's vocabulary
        ours.learn_one(counts, label)
        theirs.learn_one(present, label)
    assert ours.predict_proba_one(query) == pytest.approx(theirs.predict_proba_one(query), rel=1e-6)
    for word in "abcdef":
        for label in ("ham", "spam", "work"):
            assert ours.p_feature_given_class(word, label) == theirs.p_feature_given_class(word, label)


def test_gaussians_have_rivers_moments() -> None:
    """Counts, means and variances; river is right at any offset."""
    ours, theirs = GaussianNB(), Peers.GaussianNB()
    for i in range(200):
        x = {"a": 1e9 + (i * 37) % 11, "b": (i * 53) % 7 / 10}
        for model in (ours, theirs):
            model.learn_one(x, "xy"[i % 2])
    for name in "ab":
        for label in "xy":
            n, mean, variance = ours.moments[name][label]
            normal = theirs.gaussians[label][name]
            assert n == normal.n_samples
            assert mean == pytest.approx(normal.mu, rel=1e-12)
            assert variance == pytest.approx(normal.sigma**2, rel=1e-6)
            assert ours.gaussians[label][name].mu == mean
            assert ours.gaussians[label][name].sigma == pytest.approx(normal.sigma, rel=1e-6)
    numbered: Any = {0: 1.0}
    ours.learn_one(numbered, "x")
    assert ours.gaussians["x"][0].n_samples == 1
    with pytest.raises(KeyError):
        _ = ours.gaussians["y"][0]


def _stream() -> list[tuple[str, str]]:
    return [
        (mail["text"], mail["label"])
        for mail in mailbox(0, 600)
        if mail["text"] is not None and mail["label"] is not None
    ]


def _pipeline(model: object) -> Any:  # noqa: ANN401 - a pipeline of texts, which its types do not know
    return compose.Pipeline(("bag", feature_extraction.BagOfWords(lowercase=True)), ("nb", model))


def test_in_a_pipeline_every_posterior_agrees() -> None:
    """Behind river's BagOfWords, scored before each label of 600 mails."""
    ours, theirs = _pipeline(MultinomialNB()), _pipeline(Theirs())
    for text, label in _stream():
        expected = theirs.predict_proba_one(text)
        assert ours.predict_proba_one(text) == pytest.approx(expected, rel=1e-10, abs=1e-10)
        ours.learn_one(text, label)
        theirs.learn_one(text, label)


def test_progressive_validation_agrees() -> None:
    """River's own driver and metrics see the same figures."""
    stream: Any = [(text, label == "spam") for text, label in _stream()]
    figures = []
    for model in (MultinomialNB(), Theirs()):
        metric = Metrics.Accuracy() + Metrics.LogLoss()
        evaluate.progressive_val_score(stream, _pipeline(model), metric)
        figures.append(metric.get())
    assert figures[0] == pytest.approx(figures[1], rel=1e-10)
    assert figures[0][0] > 0.9


def test_a_text_is_read_as_river_reads_it() -> None:
    """The classic class takes texts too, by the peers' rule."""
    alone, piped = MultinomialNB(), _pipeline(MultinomialNB())
    for text, label in _stream()[:200]:
        assert alone.predict_proba_one(text) == piped.predict_proba_one(text)
        alone.learn_one(text, label)
        piped.learn_one(text, label)


def test_parameters_survive_cloning() -> None:
    """River clones by what the constructor was given."""
    clone = MultinomialNB(0.5, weight="boolean", unknown="skip").clone()
    assert (clone.alpha, clone.weight, clone.unknown) == (0.5, "boolean", "skip")
    clone.learn_one({"a": 3}, "x")
    assert clone.clone().class_counts == {}


def test_a_parameter_may_be_set_after_learning() -> None:
    """Pseudo-counts are a setting: the counts stay. What would have counted otherwise is refused."""
    ours, theirs = _both([({"a": 2}, "spam"), ({"b": 1}, "ham")], 1.0)
    ours.alpha = theirs.alpha = 0.1
    assert ours.predict_proba_one({"a": 1}) == pytest.approx(theirs.predict_proba_one({"a": 1}), rel=1e-12)
    assert ours.p_feature_given_class("a", "spam") == theirs.p_feature_given_class("a", "spam")
    assert ours.classes_ == theirs.classes_
    for name, value in (("weight", "boolean"), ("alpha", -1.0)):
        with pytest.raises(ValueError, match=r"cannot change|above 0"):
            setattr(ours, name, value)
    assert (ours.weight, ours.alpha, ours.class_counts) == ("counts", 0.1, {"spam": 1, "ham": 1})


# ---- the table of differences: both columns are run


def test_only_empty_messages_then_a_word() -> None:
    """T3."""
    ours, theirs = _both([({}, "ham"), ({}, "ham"), ({}, "spam")], 1.0)
    with pytest.raises(ZeroDivisionError):
        theirs.predict_proba_one({"a": 1})
    assert ours.predict_proba_one({"a": 1}) == pytest.approx({"ham": 2 / 3, "spam": 1 / 3})


@pytest.mark.parametrize("query", [{"a": 1}, {"neurips": 1}])
def test_no_smoothing_and_an_unseen_word(query: Mapping[str, int]) -> None:
    """T6."""
    ours, theirs = _both([({"a": 1}, "ham"), ({"b": 1}, "spam")], 0.0)
    with pytest.raises(ValueError, match=r"math domain error|positive input"):
        theirs.predict_proba_one(query)
    assert sum(ours.predict_proba_one(query).values()) == 1.0


def test_alpha_below_nothing() -> None:
    """T8."""
    Theirs(-1.0)
    with pytest.raises(ValueError, match="above 0"):
        MultinomialNB(-1.0)


def test_the_share_of_a_class_before_anything() -> None:
    """T4."""
    with pytest.raises(ZeroDivisionError):
        Theirs().p_class("ham")
    assert MultinomialNB().p_class("ham") == 0.0


@pytest.mark.parametrize("bad", [-1, "oops"])
def test_counts_that_cannot_be(bad: object) -> None:
    """T12, T16: the peer's state is changed, ours is not."""
    ours, theirs = _both([({"a": 1}, "ham"), ({"b": 1}, "spam")], 1.0)
    message = {"a": 1, "b": bad}
    before = ours.joint_log_likelihood({"a": 1, "b": 1})
    try:
        theirs.learn_one(message, "ham")
    except TypeError:
        assert theirs.class_counts["ham"] == 2
    assert theirs.class_counts["ham"] == 2
    with pytest.raises(ValueError, match="count of 'b'"):
        ours.learn_one(message, "ham")
    assert ours.class_counts == {"ham": 1.0, "spam": 1.0}
    assert ours.joint_log_likelihood({"a": 1, "b": 1}) == before


def test_a_word_with_count_0() -> None:
    """T10, of counts."""
    ours, theirs = _both([({"a": 1, "b": 0}, "ham"), ({"a": 2}, "spam")], 1.0)
    absent, _ = _both([({"a": 1}, "ham"), ({"a": 2}, "spam")], 1.0)
    assert theirs.n_terms == 2
    assert ours.joint_log_likelihood({"a": 1}) == absent.joint_log_likelihood({"a": 1})


def test_no_label() -> None:
    """T21."""
    ours, theirs = MultinomialNB(), Theirs()
    theirs.learn_one({"a": 1}, None)
    ours.learn_one({"a": 1}, None)
    assert dict(theirs.class_counts) == {None: 1}
    assert ours.class_counts == {}


def test_labels_1_and_true() -> None:
    """T19."""
    ours, theirs = MultinomialNB(), Theirs()
    theirs.learn_one({"a": 1}, 1)
    theirs.learn_one({"a": 1}, True)
    assert dict(theirs.class_counts) == {1: 2}
    ours.learn_one({"a": 1}, 1)
    with pytest.raises(ValueError, match="a label of this model must be int"):
        ours.learn_one({"a": 1}, True)


def test_equal_posteriors() -> None:
    """T18."""
    corpus: Corpus = [({"a": 1}, "spam"), ({"a": 1}, "ham")]
    first, second = _both(corpus, 1.0), _both(corpus[::-1], 1.0)
    assert [first[1].predict_one({"a": 1}), second[1].predict_one({"a": 1})] == ["spam", "ham"]
    assert [first[0].predict_one({"a": 1}), second[0].predict_one({"a": 1})] == ["ham", "ham"]
