"""What all tests share: hypothesis' profile and the options of long campaigns."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "streamnb",
    deadline=None,  # these machines are noisy
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("streamnb")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Long campaigns take these; the defaults are what runs every time."""
    parser.addoption("--kills", type=int, default=30, help="kill -9 so often in each crash test")
    parser.addoption("--seed", type=int, default=0, help="of the random moments of a crash test")
    parser.addoption("--runs", type=int, default=2_000, help="schedules, mutations and flips of a campaign")
    parser.addoption("--away", type=float, default=2.0, help="seconds for which a broker is away")


@pytest.fixture
def away_s(request: pytest.FixtureRequest) -> float:
    """How long a broker is away."""
    return float(request.config.getoption("--away"))


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a crash test kills."""
    return int(request.config.getoption("--kills"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of a crash test's moments."""
    return int(request.config.getoption("--seed"))


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> int:
    """How much of a campaign to run."""
    return int(request.config.getoption("--runs"))
