"""One table of exit codes: the same cause gives the same code in every command, and never a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from streamnb import TEXT_ONLY, NaiveBayes, errors
from streamnb.cli import app, exits

SPAM = str(Path(__file__).parents[2] / "configs" / "spam.toml")
NOBODY = "no.such.host.invalid:9092"
LINES = [
    "--set",
    'source={kind="jsonl", path="mail.jsonl"}',
    "--set",
    'sink={kind="jsonl", path="scores.jsonl"}',
    "--set",
    'dead_letters.sink={kind="jsonl", path="dead.jsonl"}',
    "--set",
    "snapshots.directory=snapshots",
]
CODES = {
    kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")
}


class Ended:
    """The exit code of a command, and its one sentence."""

    def __init__(self, code: int, said: str) -> None:
        self.code = code
        self.said = said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with `mail.jsonl`, `model.snb` and `three.snb`, a model of three classes."""
    monkeypatch.chdir(tmp_path)
    lines = [b'{"text": "win money", "label": "spam"}', b'{"text": "lunch at noon", "label": "ham"}'] * 20
    (tmp_path / "mail.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    model = NaiveBayes(TEXT_ONLY)
    model.learn_many([{"text": "win money"}, {"text": "lunch at noon"}] * 20, ["spam", "ham"] * 20)
    model.save(tmp_path / "model.snb")
    model.learn_many([{"text": "hello"}] * 5, ["other"] * 5)
    model.save(tmp_path / "three.snb")
    return tmp_path


def streamnb(capfd: pytest.CaptureFixture[str], *words: str) -> Ended:
    """Run a command in this process."""
    streams = sys.stdout, sys.stderr
    try:
        code = exits.exit_code(lambda: app(list(words), prog_name="streamnb"))
    finally:
        sys.stdout, sys.stderr = streams
    out, err = capfd.readouterr()
    ended = Ended(code, err + out)
    assert "Traceback" not in ended.said
    assert code in CODES
    assert code != 70, ended.said
    return ended


COMMANDS = {
    "run": ["run", "PATH"],
    "run --from": ["run", SPAM, *LINES, "--from", "PATH"],
    "run, source": ["run", SPAM, *LINES, "--set", "source.path=PATH"],
    "check": ["check", "PATH"],
    "check, source": ["check", SPAM, *LINES, "--set", "source.path=PATH"],
    "learn": ["learn", "PATH", "--config", SPAM, "-o", "out.snb"],
    "learn --config": ["learn", "mail.jsonl", "--config", "PATH", "-o", "out.snb"],
    "score": ["score", "PATH", "mail.jsonl"],
    "score, lines": ["score", "model.snb", "PATH"],
    "explain": ["explain", "PATH", "win"],
    "evaluate": ["evaluate", "PATH", "--config", SPAM],
    "evaluate --config": ["evaluate", "mail.jsonl", "--config", "PATH"],
    "evaluate --compare": ["evaluate", "mail.jsonl", "--config", SPAM, "--compare", "PATH.toml"],
    "tune": ["tune", "PATH", "--config", SPAM],
    "generate": ["generate", "PATH"],
    "produce": ["produce", "PATH", "--topic", "t", "--bootstrap-servers", NOBODY],
    "inspect": ["snapshot", "inspect", "PATH"],
    "verify": ["snapshot", "verify", "PATH"],
    "diff": ["snapshot", "diff", "model.snb", "PATH"],
    "merge": ["snapshot", "merge", "PATH", "model.snb", "-o", "out.snb"],
    "grow": ["snapshot", "grow", "PATH", "--config", SPAM, "-o", "out.snb"],
    "relabel": ["snapshot", "relabel", "PATH", "spam=junk", "-o", "out.snb"],
    "export": ["snapshot", "export", "PATH", "-o", "out.csv"],
    "pin": ["snapshot", "pin", "PATH", "1"],
    "rollback": ["snapshot", "rollback", "PATH", "1"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_exit_code_2_in_every_command(
    command: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was 2, 65, 69 or 74. What stands on the command line or in the settings is wrong."""
    words = [word.replace("PATH", "missing") for word in COMMANDS[command]]
    ended = streamnb(capfd, *words)

    assert ended.code == 2
    assert "missing" in ended.said
    assert not (folder / "out.snb").exists()


ODD = (
    "",
    ".",
    "-",
    "a-file",
    "a-folder",
    "no-access",
    "/dev/null",
    "x" * 300,
    "\udcff",
    "-1",
    "9" * 40,
    "bin",
)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_odd_path_is_one_sentence_and_a_code_of_the_table(
    command: str, odd: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Empty, a folder, standard input, another kind of file, a device, too long, not UTF-8, a number."""
    (folder / "a-folder").mkdir()
    (folder / "a-file").write_text("nothing that a command reads\n")
    (folder / "no-access").write_text("")
    (folder / "no-access").chmod(0)
    (folder / "bin").write_bytes(bytes(range(256)) * 20)
    words = [word.replace("PATH", odd) for word in COMMANDS[command]]
    stdin, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        streamnb(capfd, *words)
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
        os.close(null)


WRITING = {
    "learn": ["learn", "mail.jsonl", "--config", SPAM, "-o", "PATH"],
    "merge": ["snapshot", "merge", "model.snb", "three.snb", "--statistics-only", "-o", "PATH"],
    "grow": ["snapshot", "grow", "model.snb", "--config", SPAM, "-o", "PATH"],
    "relabel": ["snapshot", "relabel", "model.snb", "spam=junk", "-o", "PATH"],
    "export": ["snapshot", "export", "model.snb", "-o", "PATH"],
    "plot": ["evaluate", "mail.jsonl", "--config", SPAM, "--plot", "PATH"],
    "sink": ["run", SPAM, *LINES, "--set", "sink.path='PATH'"],
}


@pytest.mark.parametrize("odd", ["", ".", "/", "..", "a-folder/", "missing/x.csv", "mail.jsonl/x", "x" * 300])
@pytest.mark.parametrize("command", WRITING)
def test_an_output_that_is_no_file_is_exit_code_2_in_every_command(
    command: str, odd: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`learn -o ''` and `-o .` were tracebacks."""
    (folder / "a-folder").mkdir()
    ended = streamnb(capfd, *(word.replace("PATH", odd) for word in WRITING[command]))

    assert ended.code == 2, ended.said


@pytest.mark.usefixtures("folder")
def test_a_full_disk_is_exit_code_74_for_scores_and_for_snapshots(capfd: pytest.CaptureFixture[str]) -> None:
    """For scores it was 69, as if a broker were away."""
    ended = streamnb(capfd, "run", SPAM, *LINES, "--set", "sink.path=/dev/full")

    assert ended.code == 74
    assert "Cannot write /dev/full: No space left on device." in ended.said


@pytest.mark.usefixtures("folder")
def test_settings_that_do_not_fit_a_snapshot_are_exit_code_2(capfd: pytest.CaptureFixture[str]) -> None:
    """The snapshot is intact, so it was wrong to end as if the disk had failed."""
    assert streamnb(capfd, "run", SPAM, *LINES).code == 0
    for command in ("run", "check"):
        ended = streamnb(capfd, command, SPAM, *LINES, "--set", "forgetting.half_life_messages=9")
        assert ended.code == 2
    ended = streamnb(
        capfd, "run", SPAM, *LINES, "--set", "forgetting.half_life_messages=9", "--from", "model.snb"
    )
    assert ended.code == 2


@pytest.mark.usefixtures("folder")
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--lines", "--messages", "-5"],
        ["demo", "--messages", "20", "--rate", "nan"],
        ["demo", "--messages", "20", "--rate", "-1"],
        ["evaluate", "mail.jsonl", "--config", SPAM, "--window", "9" * 40],
        ["evaluate", "mail.jsonl", "--config", SPAM, "--seed", "-1"],
        ["evaluate", "mail.jsonl", "--config", SPAM, "--feedback", "partial", "--share", "nan"],
        ["tune", "mail.jsonl", "--config", SPAM, "--part", "nan"],
        ["generate", "model.snb", "-n", "-1"],
        ["explain", "model.snb", "win", "--top", "0"],
        ["snapshot", "pin", ".", "9" * 40],
        ["run", SPAM, "--set", "engine.start=" + "9" * 40],
        ["run", SPAM, "--set", ".".join("a" * 3000) + "=1"],
        ["\udcff"],
    ],
)
def test_an_odd_number_is_exit_code_2(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Some were tracebacks, and a rate that is not a number waited without end."""
    assert streamnb(capfd, *words).code == 2


@pytest.mark.usefixtures("folder")
def test_forgotten_classes_of_an_export_are_exit_code_2(capfd: pytest.CaptureFixture[str]) -> None:
    """The hint names the option; it was exit code 74."""
    ended = streamnb(capfd, "snapshot", "export", "three.snb", "--weights", "-o", "weights.csv")

    assert ended.code == 2
    assert "`--classes spam,ham`" in ended.said


@pytest.mark.usefixtures("folder")
def test_a_text_that_is_not_utf8_cannot_be_explained(capfd: pytest.CaptureFixture[str]) -> None:
    """A shell passes a byte of another encoding as half of a surrogate pair."""
    ended = streamnb(capfd, "explain", "model.snb", "win \udcff")

    assert ended.code == 2
    assert ended.said == (
        "streamnb: The text has bytes that are not UTF-8. Use a terminal or a script in UTF-8.\n"
    )


@pytest.mark.parametrize("change", [r'snapshots.directory="a\u0000b"', "sink.path=\udcff", "\udcff=1"])
@pytest.mark.usefixtures("folder")
def test_a_setting_that_no_path_can_have_is_exit_code_2(
    change: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A byte 0 was a traceback where the path was used, and other bytes where a snapshot kept them."""
    ended = streamnb(capfd, "run", SPAM, *LINES, "--set", change)

    assert ended.code == 2
    assert "has a byte 0, or bytes that are not UTF-8." in ended.said


@pytest.mark.parametrize("host", ["a" * 70, "no.such.host.invalid", "192.0.2.1", "..", "x y"])
@pytest.mark.usefixtures("folder")
def test_an_address_that_the_metrics_page_cannot_have_is_exit_code_2(
    host: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A name with a label of 70 letters was a traceback."""
    ended = streamnb(
        capfd, "run", SPAM, *LINES, "--set", "metrics.port=19571", "--set", f'metrics.host="{host}"'
    )

    assert ended.code == 2
    assert f"The metrics page cannot be served on {host}:19571" in ended.said


@pytest.mark.usefixtures("folder")
def test_a_metrics_port_in_use_is_exit_code_69(capfd: pytest.CaptureFixture[str]) -> None:
    """A restart can help: the engine that had it may still be stopping."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert streamnb(capfd, "run", SPAM, *LINES, "--set", f"metrics.port={port}").code == 69


@pytest.mark.timeout(10)
@pytest.mark.parametrize("servers", ["5", "0", '"h:99999"', '"h:0"', '":9092"', '"h:x"', '["h:1", 2]', '","'])
@pytest.mark.parametrize("command", ["run", "check", "produce"])
@pytest.mark.usefixtures("folder")
def test_an_address_of_a_broker_that_cannot_be_right_is_exit_code_2(
    command: str, servers: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The number was a traceback, and a port that does not exist took 30 s."""
    words = {"produce": ["produce", "mail.jsonl", "--topic", "t", "--config", SPAM]}.get(
        command, [command, SPAM]
    )
    ended = streamnb(capfd, *words, "--set", f"kafka.bootstrap_servers={servers}")

    assert ended.code == 2


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("folder")
def test_a_broker_whose_name_nobody_knows_is_exit_code_69_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    """The client would ask for 30 s."""
    ended = streamnb(capfd, "run", SPAM, "--set", "kafka.bootstrap_servers=no.such.host.invalid:9092")

    assert ended.code == 69
    assert "No name server knows a broker of no.such.host.invalid:9092." in ended.said


def test_check_asks_for_all_topics_side_by_side_and_says_that_it_waits() -> None:
    """Without a broker it was silent for 95 s. Asked in turn, each of the three would say that it waits."""
    words = ["check", SPAM, "--set", "kafka.bootstrap_servers=127.0.0.1:1"]
    done = subprocess.run([sys.executable, "-m", "streamnb", *words], capture_output=True, check=False)

    assert done.returncode == 69
    waited = [line.strip() for line in done.stderr.splitlines() if line.endswith(b"still being checked")]
    assert waited == [b"source: still being checked"]
