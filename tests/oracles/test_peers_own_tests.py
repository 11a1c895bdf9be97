"""The peers' own tests on our estimators: each that fails is listed, with the reason."""

from tests.support.peers_tests import FAILING, of_river, of_sklearn, reason_of


def test_scikit_learns_own_tests_pass_but_for_those_listed() -> None:
    """A row of the table goes when its test begins to pass."""
    found = of_sklearn()
    failing = {name for name, outcome in found.items() if outcome != "PASSED"}
    assert {name for name in failing if not reason_of(name)} == set()
    assert {row for row in FAILING if not any(name.startswith(row) for name in failing)} == set()
    assert len(found) - len(failing) >= 65


def test_rivers_own_examples_give_with_ours_what_they_give_with_its_own() -> None:
    """An example that fails with river's own estimator fails by the version of pandas."""
    ours, n = of_river(ours=True)
    theirs, _ = of_river(ours=False)
    assert n > 70
    assert set(ours) <= set(theirs)
