"""A plugin of pytest that puts our estimators in scikit-learn's place before its tests are imported."""


def pytest_configure() -> None:
    """Replace the names: not at the import, because a search for doctests imports this module too."""
    import sklearn.naive_bayes

    from tests.support.as_sklearn import REPLACED

    for name, made in REPLACED.items():
        setattr(sklearn.naive_bayes, name, made)
