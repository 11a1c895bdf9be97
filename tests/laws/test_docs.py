"""The README is true: its commands run, its Python runs, its rooms exist, its words are the code's."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.kafka.broker import UnreachableError, assemble

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"(<!-- kafka -->\n)?```console\n(.*?)```", re.DOTALL)

# `make test` is this very run; the others are executed below.
NOT_HERE = {"make test"}


def blocks(*, kafka: bool) -> list[list[str]]:
    """The commands of each console block, those that need a real broker apart."""
    return [
        [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
        for mark, text in BLOCK.findall(README)
        if bool(mark) == kafka
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A folder in which the README's commands find what they name, and leave what they make."""
    for name in ("streamnb", "tests", "deploy", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, tmp_path / name)  # with its age, which make looks at
    (tmp_path / ".venv").symlink_to(sys.prefix)
    installed = Path(sys.prefix) / ".installed"
    made_from = [ROOT / "pyproject.toml", *(ROOT / "streamnb").rglob("_kernel/*.p*")]
    if not installed.exists() or any(path.stat().st_mtime > installed.stat().st_mtime for path in made_from):
        pytest.fail("this environment is older than what it is made from: run `make install`")
    yield tmp_path
    subprocess.run(["make", "kafka-stop"], cwd=tmp_path, capture_output=True, check=False)


def run(command: str, folder: Path) -> None:
    """One command, as a shell runs it; what it printed is shown where it fails."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )

    assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"


def test_there_are_commands_to_run() -> None:
    """Both kinds of block are found, and the first screen has the two commands."""
    assert blocks(kafka=False)[0] == ["make demo", "make test"]
    assert len(blocks(kafka=False)) >= 3
    assert len(blocks(kafka=True)) == 1


@pytest.mark.parametrize("commands", blocks(kafka=False), ids=lambda commands: commands[0])
def test_the_commands_of_the_readme_run(commands: list[str], checkout: Path) -> None:
    """One after another, in one folder."""
    for command in commands:
        if command not in NOT_HERE:
            run(command, checkout)


@pytest.mark.kafka
def test_the_commands_of_the_readme_run_on_a_real_broker(checkout: Path) -> None:
    """On the port that the configurations name, unless somebody else has it."""
    try:
        assemble()
    except UnreachableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    with socket.socket() as taken:
        if taken.connect_ex(("127.0.0.1", 9092)) == 0 and os.environ.get("CI") != "true":
            pytest.skip("a broker of somebody else's listens on 127.0.0.1:9092, where the README's would")
    (commands,) = blocks(kafka=True)
    for command in commands:
        run(command, checkout)


def test_the_python_of_the_readme_runs() -> None:
    """Its examples print what the README says they print."""
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)

    assert results.attempted > 5
    assert results.failed == 0


def test_the_make_targets_that_are_promised_exist() -> None:
    """`make help` lists them."""
    make = shutil.which("make")
    assert make is not None
    listed = subprocess.run([make, "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    for target in ("install", "demo", "test", "check", "bench", "kafka", "help"):
        assert f"make {target} " in listed


@pytest.mark.parametrize("word", ["checkpoint", f"{ROOT}/", f"{Path.home()}/"])
def test_words_that_do_not_belong_here_are_nowhere(word: str) -> None:
    """One word for one thing, and no path of anybody's machine."""
    kinds = {".py", ".md", ".toml", ".yaml", ".json", ".xml"}
    folders = [ROOT / part for part in ("streamnb", "tests", "deploy", "configs")]
    files = [*ROOT.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = {path: path.read_text() for path in files if path.suffix in kinds and path != Path(__file__)}
    holders = [path for path, text in texts.items() if word in text]

    assert len(texts) > 50
    assert holders == []
