"""What an import costs, and what it shows: light, typed, listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import streamnb
from streamnb import evaluation
from streamnb.cli.evaluate import SHARE, TAUGHT, Mode

ROOT = Path(__file__).parents[2]

STRANGER = """
from streamnb import Batch, MultinomialNB, NaiveBayes, Numbers, Scores, TEXT_ONLY, View, Words

model = NaiveBayes([View("words", Words()), View("amount", Numbers(fields=("amount",)))], head="product")
model.learn_one({"text": "win money", "amount": 9.0}, "spam")
scores: Scores = model.step(Batch({"text": ["money"], "amount": [8.0]}, [None]))
posterior: dict[str | bool | int, float] = model.predict_proba_one({"text": "money"})
label: str | bool | int | None = MultinomialNB(alpha=1).predict_one({"money": 1})
reveal_type(NaiveBayes(TEXT_ONLY).predict_one({"text": "money"}))
reveal_type(scores.posterior)
"""


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a statement loads, in a process of its own."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_an_estimator_is_imported_without_scipy() -> None:
    """It costs four times as much processor time as everything else together."""
    loaded = loaded_by("from streamnb import MultinomialNB")

    assert "river" in loaded
    assert not loaded & {"scipy", "pandas", "polars", "kafka", "confluent_kafka"}


def test_streamnb_itself_loads_nothing_but_itself() -> None:
    """A name loads its package when it is first asked for."""
    assert not loaded_by("import streamnb") & {"numpy", "river", "msgspec"}


def test_help_is_printed_without_numpy() -> None:
    """An operator who asks for help waits for the command line alone."""
    program = (
        "import sys\nfrom streamnb.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert 'numpy' not in sys.modules and 'river' not in sys.modules, sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "evaluate" in done.stdout


def test_every_public_name_is_listed_and_there() -> None:
    """`dir`, `__all__` and what an import gives agree."""
    assert dir(streamnb) == sorted(streamnb.__all__)
    assert all(getattr(streamnb, name) is not None for name in streamnb.__all__)
    with pytest.raises(AttributeError, match="telepathy"):
        streamnb.telepathy  # noqa: B018


def test_a_strangers_script_is_typed(tmp_path: Path) -> None:
    """`mypy --strict` knows every public name from the installed package alone.

    Its cache is kept between runs: the types of numpy and of the standard library take it twelve seconds.
    """
    cache = ROOT / ".mypy_cache" / "stranger"
    (tmp_path / "script.py").write_text(STRANGER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stdout
    assert 'Revealed type is "Any"' not in done.stdout


def test_what_the_command_line_writes_again_is_what_evaluation_says() -> None:
    """Defaults and names of feedback, which `--help` shows without loading `streamnb.evaluation`."""
    assert get_args(Mode) == get_args(evaluation.Mode)
    assert (TAUGHT, SHARE) == (evaluation.TAUGHT, evaluation.SHARE)
