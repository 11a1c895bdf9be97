"""How a command ends: its exit code, one sentence on standard error, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamnb import TEXT_ONLY, NaiveBayes
from streamnb.cli import exits
from streamnb.errors import SettingsError
from tests.support.commands import forked_streamnb
from tests.support.streams import lines_of

SPAM = str(Path(__file__).parents[2] / "configs" / "spam.toml")
STREAMNB = (sys.executable, "-m", "streamnb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `mail.jsonl` and `model.snb`."""
    made = tmp_path_factory.mktemp("exits")
    (made / "mail.jsonl").write_bytes(b"\n".join(lines_of("mailbox")[:600]) + b"\n")
    model = NaiveBayes(TEXT_ONLY)
    model.learn_many([{"text": "win money"}, {"text": "lunch at noon"}] * 20, ["spam", "ham"] * 20)
    model.save(made / "model.snb")
    return made


PRINTING = {
    "--help": ["--help"],
    "--version": ["--version"],
    "score": ["score", "model.snb", "mail.jsonl"],
    "explain": ["explain", "model.snb", "win"],
    "evaluate": ["evaluate", "mail.jsonl", "--config", SPAM],
    "generate": ["generate", "model.snb"],
    "demo": ["demo", "--lines", "--messages", "500"],
    "inspect": ["snapshot", "inspect", "model.snb"],
    "verify": ["snapshot", "verify", "model.snb"],
    "diff": ["snapshot", "diff", "model.snb", "model.snb"],
}


def words_of(command: str) -> list[str]:
    """Return the words of a process: Python itself for `score`, otherwise a fork that has imported all."""
    return [*(STREAMNB if command == "score" else forked_streamnb()), *PRINTING[command]]


@pytest.mark.parametrize("command", PRINTING)
def test_a_full_standard_output_is_one_sentence_and_exit_code_74(command: str, folder: Path) -> None:
    """It was a traceback and exit code 1."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(words_of(command), cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 74
    assert done.stderr.startswith(b"streamnb: Cannot write standard output: No space left on device. ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command", PRINTING)
def test_a_reader_that_has_exited_ends_a_command_quietly(command: str, folder: Path) -> None:
    """As `streamnb score ... | head` does: exit code 0, and nothing on standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words_of(command), cwd=folder, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", PRINTING)
def test_a_closed_standard_output_is_an_error(command: str, folder: Path) -> None:
    """Some commands ended with 0 and had printed nothing."""
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *STREAMNB, *PRINTING[command]]
    done = subprocess.run(closed, cwd=folder, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 74
    assert done.stderr.startswith(b"streamnb: Cannot write standard output: Bad file descriptor. ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
def test_an_error_that_cannot_be_printed_still_has_its_exit_code(redirected: str, folder: Path) -> None:
    """Nothing of it is printed on standard output, either."""
    words = [*STREAMNB, "evaluate", "model.snb", "--config", SPAM]  # no line of it is a message
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", *words], cwd=folder, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (65, b"")


def test_a_memory_limit_is_one_sentence_and_exit_code_74(tmp_path: Path) -> None:
    """A vocabulary of 2,000,000 words does not fit in 200 MB."""
    with (tmp_path / "words.jsonl").open("w") as file:
        for i in range(100_000):
            text = " ".join(f"w{i * 20 + j}" for j in range(20))
            file.write(f'{{"text": "{text}", "label": "{"ab"[i % 2]}"}}\n')

    words = [*STREAMNB, "learn", "words.jsonl", "--config", SPAM, "-o", "out.snb"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 200000; exec "$@"', "sh", *words],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a thread's stack would count
    )

    assert done.returncode == 74
    assert done.stderr.startswith(b"streamnb: The memory that this process may use is full. ")
    assert done.stderr.count(b"\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["words.jsonl"]


INTERRUPTED = """
import os, runpy, signal, sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, CtrlC())
wanted, sys.argv = sys.argv[1], ["streamnb", "score", "model.snb"]
runpy.run_module("streamnb", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["typer", "streamnb.cli.run", "msgspec", "numpy", "streamnb.config"])
def test_ctrl_c_while_modules_are_imported_prints_nothing(module: str, folder: Path) -> None:
    """They take most of the first second; a shell sees 130 in either case."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], cwd=folder, capture_output=True, check=False
    )

    assert done.returncode in (130, -signal.SIGINT)
    assert done.stderr == b""


def ended(command: Callable[[], object], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code of a command in this process, and its standard error."""
    out, err = sys.stdout, sys.stderr
    try:
        code = exits.exit_code(command)
    finally:
        sys.stdout, sys.stderr = out, err
    return code, capfd.readouterr().err


def raising(error: Exception) -> Callable[[], object]:
    """Return a command that raises an exception."""

    def command() -> None:
        raise error

    return command


def test_an_unexpected_exception_is_a_defect_with_its_traceback_in_a_file(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal gets one sentence and the file's name; the exit code is 70."""
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        code, said = ended(raising(KeyError("mu")), capfd)

    (path,) = tmp_path.iterdir()
    assert code == 70
    assert said == (
        "streamnb: A defect of streamnb ended the command: KeyError: 'mu'. "
        f"Report it with the file {path}, which holds the traceback.\n"
    )
    assert path.read_text().startswith("Traceback (most recent call last):")
    assert path.stat().st_mode & 0o077 == 0


def test_a_traceback_that_no_file_can_hold_is_printed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container without a writable folder it would be lost."""
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
        code, said = ended(raising(KeyError("mu")), capfd)

    assert code == 70
    assert said.startswith("Traceback (most recent call last):")
    assert said.endswith("Report it with the lines above; no file could be written.\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("`a` is not a setting."), 2),
        (MemoryError(), 74),
        (ImportError("libx.so: failed to map segment from shared object"), 74),
        (RuntimeError("can't start new thread"), 74),
        (OSError(24, "Too many open files"), 74),
        (SystemExit(75), 75),
        (SystemExit(None), 0),
        (SystemExit("a text, which is no code"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_exception_has_the_exit_code_of_its_cause(
    error: Exception, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a traceback."""
    found, said = ended(raising(error), capfd)

    assert found == code
    assert "Traceback" not in said
