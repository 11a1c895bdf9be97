"""What all tests share: hypothesis' profile, the options of long campaigns, the order of files among workers.

Much of the time of a run is waiting: for brokers, for engines that start, for the disk. So there are more
workers than cores, and the longest files start first: otherwise one worker runs a long file alone at the end.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.catalogue import Outcomes, held_by

settings.register_profile(
    "streamnb",
    deadline=None,  # these machines are noisy
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("streamnb")

TESTS = Path(__file__).parent
WAITING_WORKERS = 2  # about as many wait for a broker at any time, while there are tests that need one
LONGEST_FIRST = (  # as measured; all other files follow in the order in which pytest finds them
    "transports/kafka/test_pipeline.py",
    "transports/kafka/test_poisoned.py",
    "engine/test_simulation.py",
    "naive_bayes/kernel/test_kernel_texts.py",
    "transports/kafka/test_exactly_once.py",
    "naive_bayes/kernel/test_kernel.py",
    "transports/kafka/test_security.py",
    "naive_bayes/statistics/test_counts.py",
    "laws/test_docs.py",
    "laws/test_build.py",
    "storage/test_container.py",
    "transports/kafka/test_confluent_transport.py",
    "transports/kafka/test_crash.py",
    "cli/test_cli.py",
    "transports/kafka/test_poll_bytes.py",
    "oracles/test_peers_own_tests.py",
    "cli/test_exits.py",
    "naive_bayes/model/test_naive_bayes.py",
    "laws/test_every_model.py",
    "transports/kafka/test_kafka_transport.py",
    "naive_bayes/statistics/test_forgetting.py",
    "naive_bayes/model/test_relabelling.py",
    "oracles/test_river_checks.py",
    "transports/kafka/test_slow_broker.py",
    "transports/kafka/test_outage.py",
    "naive_bayes/statistics/test_scatter.py",
    "naive_bayes/statistics/test_bin_edges.py",
    "naive_bayes/kernel/test_kernel_blocks.py",
    "transports/kafka/test_client_traps.py",
    "transports/kafka/test_many_rows.py",
    "transports/kafka/test_upstream.py",
    "storage/test_faulty_disk.py",
    "wire/test_score.py",
    "wire/test_message.py",
    "wire/test_fields.py",
    "oracles/test_against_fractions.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """See, in a run of the whole suite, that the tests of every fault of the catalogue ran."""
    config.pluginmanager.register(Outcomes(held_by()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers of ``-n auto``: one per core, and those that wait."""
    return len(os.sched_getaffinity(0)) + WAITING_WORKERS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: with ``--no-loadscope-reorder`` workers take files in this order."""
    missing = [name for name in LONGEST_FIRST if not (TESTS / name).exists()]
    if missing:
        raise pytest.UsageError(
            f"tests/conftest.py names files that do not exist: {missing}. Correct the list."
        )
    rank = {TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_collection_finish() -> None:
    """Leave the collected tests and the imported modules out of garbage collection.

    There are 300,000 objects that stay to the end: without this, looking at them all takes 0.2 s each time.
    """
    gc.collect()
    gc.freeze()


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
