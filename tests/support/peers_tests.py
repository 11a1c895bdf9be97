"""The peers' own tests of naive Bayes, run from the installed wheels with our estimators in place of theirs.

``python -m tests.support.peers_tests`` runs them and prints what fails, and the counts. The names are
replaced in `sklearn.naive_bayes` before scikit-learn's test module is imported, and in `river.naive_bayes`
before the examples in river's docstrings are run, which are the tests that its wheel has. Nothing of them is
copied.

`FAILING` lists the tests of scikit-learn that are expected to fail, each with its reason.
"""

from __future__ import annotations

import argparse
import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from river import naive_bayes

from streamnb.naive_bayes import estimators

RIVER = ("BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB")
ROOT = Path(__file__).parents[2]

_OPEN = "classes may appear at any time, so none need be declared"
_WORDS = "it asks for the words of an error; ours refuses with others"
_ZERO = "it asks for a warning that 0 is replaced; ours takes 0 for maximum likelihood"
_PRIVATE = "it calls a private method"
FAILING: Mapping[str, str] = {
    "test_gnb": _OPEN,
    "test_NB_partial_fit_no_first_classes": _OPEN,
    "test_gnb_neg_priors": _WORDS,
    "test_gnb_wrong_nb_priors": _WORDS,
    "test_discretenb_provide_prior": _WORDS,
    "test_categoricalnb_min_categories_errors": _WORDS,
    "test_alpha_vector": _WORDS + ", after all its answers were right",
    "test_gnb_prior_greater_one": "a prior is divided by its sum",
    "test_alpha": _ZERO,
    "test_gnb_check_update_with_no_data": _PRIVATE,
    "test_check_alpha": _PRIVATE,
    "test_check_accuracy_on_digits": (
        "theirs adds a share of the largest variance of any column to every variance; ours steadies each "
        "number by its own pooled variance, so that no posterior depends on units"
    ),
    "test_categorical_input_tag[CategoricalNB]": "a tag of scikit-learn's API",
}
"""Name of a test, or of one of its cases, to why it fails."""


def of_sklearn() -> dict[str, str]:
    """Run scikit-learn's tests in a process of their own; return the outcome of each."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "sklearn.tests.test_naive_bayes", "-rA", "-q"]
    command += ["-p", "tests.support.peers_tests_plugin", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-c", "/dev/null", "-W", "ignore", "--tb=no"]  # not this project's settings
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S*?::(\S+\[.*?\]|\S+)", run.stdout, re.MULTILINE)
    if not found:
        raise RuntimeError(run.stdout + run.stderr)
    return {name: outcome for outcome, name in found}


def reason_of(name: str) -> str:
    """Return why a test is expected to fail; empty if it is not."""
    return FAILING.get(name, FAILING.get(name.partition("[")[0], ""))


def of_river(*, ours: bool) -> tuple[list[str], int]:
    """Run the examples of river's naive Bayes; return those that fail, and the number of all.

    Parameters
    ----------
    ours : bool
        Whether our estimators take river's names; otherwise river's own run.
    """
    parser, runner = doctest.DocTestParser(), _Runner(checker=_Numbers(), verbose=False)
    texts = {name: inspect.getdoc(getattr(naive_bayes, name)) or "" for name in RIVER}
    with _replaced(ours=ours):
        for name, text in texts.items():
            runner.run(parser.get_doctest(text, {}, name, None, 0), out=lambda _: None)
    return runner.failing, runner.tries


@contextmanager
def _replaced(*, ours: bool) -> Iterator[None]:
    module: Any = naive_bayes
    theirs = {name: getattr(module, name) for name in RIVER}
    try:
        for name in RIVER if ours else ():
            setattr(module, name, getattr(estimators, name))
        yield
    finally:
        for name, made in theirs.items():
            setattr(module, name, made)


class _Numbers(doctest.OutputChecker):
    """Compares numbers to the digits that are written, as river's own settings of pytest do."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether an output is the expected one."""
        number = r"\d+\.\d+"
        if re.sub(number, "#", want).split() != re.sub(number, "#", got).split():
            return super().check_output(want, got, optionflags | doctest.ELLIPSIS)
        pairs = zip(re.findall(number, want), re.findall(number, got), strict=True)
        return all(abs(float(a) - float(b)) <= 10.0 ** -len(a.partition(".")[2]) for a, b in pairs)


class _Runner(doctest.DocTestRunner):
    """Collects the sources of the examples that fail."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(**settings)
        self.failing: list[str] = []

    def report_failure(
        self, _out: object, test: doctest.DocTest, example: doctest.Example, _got: str
    ) -> None:
        """Note an example with another output."""
        self.failing.append(f"{test.name}: {example.source.strip()}")

    def report_unexpected_exception(
        self,
        _out: object,
        test: doctest.DocTest,
        example: doctest.Example,
        _error: object,
    ) -> None:
        """Note an example that raises."""
        self.failing.append(f"{test.name}: {example.source.strip()}")


def main() -> None:
    """Print every test that does not pass, with its reason, and the counts."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    found = of_sklearn()
    for name, outcome in found.items():
        if outcome != "PASSED":
            print(f"{name}: {reason_of(name) or 'not expected'}")
    print(f"scikit-learn: {sum(outcome == 'PASSED' for outcome in found.values())} of {len(found)} pass")
    for ours in (True, False):
        failing, n = of_river(ours=ours)
        print(*failing, f"river, {'ours' if ours else 'its own'}: {n - len(failing)} of {n} pass", sep="\n")


if __name__ == "__main__":
    main()
