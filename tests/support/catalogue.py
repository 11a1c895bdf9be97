"""The catalogue of faults: the tests that hold each row, or why a row has none, and whether they ran.

The rows are those of the project's list of failures: bad input (A), brokers (B), the process (C), the disk
(D), settings (E), attacks on the model (F), and pages, names and secrets from outside (G). `Outcomes` is a
plugin of pytest that reads, at the end of a run of the whole suite, which of the tests ran.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = [
    f"{letter}{number}"
    for letter, n in {"A": 21, "B": 24, "C": 14, "D": 16, "E": 8, "F": 13, "G": 15}.items()
    for number in range(1, n + 1)
]
NAMED = re.compile(r"^def (test_((?:[A-G]\d+_)+)\w*)", re.MULTILINE)
BY_NAME_ALONE = "ABCDG"
"""The letters whose rows are in the names of tests. Names with an F may be those of another list."""

KAFKA = "transports/kafka"
FORGETTING = "naive_bayes/statistics/test_forgetting.py"
BY_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "A18": (f"{KAFKA}/test_kafka_transport.py::test_a_compression_that_is_not_installed_stops_the_reader",),
    "A19": (
        "naive_bayes/features/test_tokenizer.py::test_any_text_reads_as_one_code_point_after_another",
        "naive_bayes/kernel/test_kernel_texts.py::test_every_code_point_is_read_alike",
    ),
    "A20": ("engine/test_dead_letters.py::test_a_large_value_is_cut_and_identified",),
    "B19": ("engine/test_lag.py::test_F18_a_run_until_the_end_names_what_it_left_behind",),
    "B20": (
        "engine/test_transactions.py::test_F8_a_record_that_is_too_large_is_not_tried_again",
        f"{KAFKA}/test_kafka_transport.py::test_a_missing_topic_is_an_error_and_is_not_created",
    ),
    "B22": ("engine/test_engine.py::test_another_topic_of_the_same_name_is_refused",),
    "C4": (f"{KAFKA}/test_pipeline.py::test_a_second_signal_exits_at_once_without_harm",),
    "C5": (f"{KAFKA}/test_crash.py::test_C1_C3_B2_B3_no_accident_loses_or_doubles_a_message",),
    "C8": ("cli/test_exits.py::test_an_exception_has_the_exit_code_of_its_cause",),
    "C9": ("engine/test_engine.py::test_a_snapshot_is_due_when_its_time_has_come",),
    "C10": (
        f"{FORGETTING}::test_F4_a_record_of_the_year_146_million_does_not_end_the_engine",
        "wire/test_message.py::test_F4_a_timestamp_that_no_model_takes_is_refused_if_times_are_read",
    ),
    "C11": ("engine/test_engine.py::test_a_mistake_in_the_writers_thread_stops_the_engine",),
    "C14": (
        "storage/test_migrations.py::test_a_snapshot_of_version_1_0_gives_the_same_model",
        "storage/test_newer_minor.py::test_every_reader_reads_a_newer_version",
    ),
    "D11": ("storage/test_files.py::test_what_cannot_be_a_directory_of_snapshots_is_refused",),
    "D13": ("engine/test_engine.py::test_the_stream_goes_on_while_a_snapshot_is_written",),
    "D15": ("engine/test_transactions.py::test_committed_offsets_that_cannot_be_right_stop_the_engine",),
    "D16": ("engine/test_one_learner.py::test_a_lock_that_the_file_system_let_slip_is_noticed",),
    "E1": ("config/test_settings.py::test_a_wrong_file_is_refused_with_its_place",),
    "E2": ("config/test_settings.py::test_topics_that_feed_themselves_are_refused",),
    "E3": ("engine/test_engine.py::test_statistics_of_other_settings_are_refused",),
    "E4": ("transports/test_topics.py::test_every_setting_that_the_transport_fixes_is_refused",),
    "E6": ("transports/test_topics.py::test_a_commit_that_failed_is_no_other_engine",),
    "E7": ("laws/test_secrets.py::test_G11_a_password_is_in_nothing_that_a_run_leaves_behind",),
    "E8": ("engine/test_metrics.py::test_no_port_is_no_page",),
    "F1": ("naive_bayes/statistics/test_eviction.py::test_F1_a_flood_of_new_words_leaves_what_was_learned",),
    "F2": ("engine/test_engine.py::test_F2_a_label_past_the_limit_becomes_a_dead_letter",),
    "F3": ("engine/test_guard.py::test_F3_a_source_teaches_its_quota_and_no_more",),
    "F5": ("engine/test_hostile_input.py::test_F5_an_invalid_weight_changes_nothing",),
    "F6": ("engine/test_hostile_input.py::test_F6_the_heaviest_labels_add_up_exactly",),
    "F7": ("laws/test_every_model.py::test_what_is_unlearned_leaves_no_trace",),
    "F8": (
        "laws/test_traps.py::test_T1_unknown_words_leave_the_prior",
        "naive_bayes/model/test_naive_bayes.py::test_T17_log_odds_stay_finite_past_certainty",
    ),
    "F9": ("naive_bayes/kernel/test_kernel.py::test_nothing_depends_on_the_seed",),
    "F11": ("laws/test_limits.py::test_F11_a_label_in_a_record_that_streamnb_wrote_is_refused",),
    "F12": ("laws/test_privacy.py::test_scores_hold_no_text_unless_they_are_explained",),
    "F13": ("naive_bayes/features/test_tokenizer.py::test_ten_times_the_text_is_ten_times_the_looks",),
    "G3": ("engine/test_metrics_server.py::test_G1_a_line_without_end_is_cut_off",),
    "G4": ("engine/test_metrics_server.py::test_G1_a_body_is_not_waited_for",),
    "G6": (
        "engine/test_metrics.py::test_a_topic_cannot_write_lines_of_its_own",
        "evaluation/test_live.py::test_a_stream_that_invents_labels_does_not_make_the_metrics_page_larger",
    ),
    "G10": ("cli/test_cli.py::test_F8_a_class_cannot_act_on_a_terminal",),
    "G13": ("naive_bayes/kernel/test_kernel.py::test_threads_share_a_model_without_harm",),
    "G14": (f"{KAFKA}/test_security.py::test_a_certificate_that_nobody_vouches_for_is_named",),
}
"""The tests of rows that no test has in its name."""

WITHOUT: Mapping[str, str] = {
    "B9": "An engine assigns its partitions itself and joins no group, so nothing is rebalanced.",
    "B10": "As B9: there is nothing to revoke.",
    "B23": "A record is learned once for each offset, by design; an id that is sent twice counts twice.",
    "B24": "A label comes with its message; there is no second topic to join.",
    "C13": "As B9: no heartbeat waits for the interpreter.",
    "E5": "An engine does not know a topic's retention; what a short one costs is B6.",
    "F4": "A model learns what it is taught; F3 bounds how much one source teaches.",
    "F10": "Features are counted by their text and not by a hash.",
    "G7": "No page changes anything.",
    "G12": "No page asks for a token.",
    "G15": "The versions in `.ci/constraints.txt` are held by the installer and not by a test.",
}
"""The rows that no test holds, each with the reason."""


def held_by() -> dict[str, set[str]]:
    """Return the tests that hold each row, as ids of pytest without parameters."""
    found: dict[str, set[str]] = {row: set() for row in ROWS}
    for path in TESTS.rglob("test_*.py"):
        place = path.relative_to(TESTS.parent)
        for name, rows in NAMED.findall(path.read_text()):
            for row in rows.rstrip("_").split("_"):
                if row in found and row[0] in BY_NAME_ALONE:
                    found[row].add(f"{place}::{name}")
    for row, names in BY_OTHER_NAMES.items():
        found[row].update(f"tests/{name}" for name in names)
    return found


def not_run(
    rows: Mapping[str, Iterable[str]], outcomes: Mapping[str, set[str]]
) -> tuple[list[str], list[str]]:
    """Return what is wrong with a run, and which rows were only skipped, in sentences.

    Parameters
    ----------
    rows : mapping of str to tests
    outcomes : mapping of str to set of str
        Of each test that was run: "passed", "failed" or "skipped", one for each of its parameters.
    """
    wrong, skipped = [], []
    for row, names in rows.items():
        tests = sorted(names)
        if unknown := [test for test in tests if test not in outcomes]:
            wrong.append(f"{row}: {', '.join(unknown)} did not run.")
        elif tests and not any("passed" in outcomes[test] for test in tests):
            skipped.append(f"{row}: every test was skipped ({', '.join(tests)}).")
    return wrong, skipped


class Outcomes:
    """Collects the outcomes of all tests, and fails a run of the whole suite that left a row out.

    With workers, reports reach the process that leads them; only that one decides. Where a test needs what a
    developer's machine may lack, such as a broker, its row is only named; in CI a skipped row is a failure.
    """

    def __init__(self, rows: Mapping[str, Iterable[str]]) -> None:
        self._rows = rows
        self._outcomes: dict[str, set[str]] = {}
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test: of its call, or of a setup that failed or skipped."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            test = report.nodeid.partition("[")[0]
            self._outcomes.setdefault(test, set()).add(report.outcome)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare, if all tests were to run and none failed."""
        config = session.config
        if hasattr(config, "workerinput") or not is_whole(config) or session.exitstatus != pytest.ExitCode.OK:
            return
        wrong, skipped = not_run(self._rows, self._outcomes)
        self._lines = wrong + skipped
        if wrong or (skipped and os.environ.get("CI") == "true"):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the rows that nothing has held in this run."""
        for line in self._lines:
            terminalreporter.write_line(f"The catalogue of faults, {line}", yellow=True)


def is_whole(config: pytest.Config) -> bool:
    """Return whether a run is of the whole suite: neither paths nor options choose among the tests."""
    options = config.option
    chosen = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "collectonly", "stepwise")
    by_testpaths = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return by_testpaths and not any(getattr(options, name, None) for name in chosen)
