"""`streamnb run`: what the first engine does and those that replace it inside the process do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import streamnb.config
import streamnb.engine
from streamnb.cli import app
from streamnb.engine.settings import Summary


@pytest.mark.parametrize("wanted", [True, False])
def test_only_the_first_engine_rebuilds(
    wanted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second one resumes from the snapshots that the first one has written."""
    rebuilt: list[bool] = []

    def build_engine(*_: object, rebuild: bool, **more: object) -> None:
        del more
        rebuilt.append(rebuild)

    def supervise(build: Callable[[], object], _: object) -> Summary:
        for _ in range(3):
            build()
        return Summary(digest={"all": "0"})

    monkeypatch.setattr(streamnb.config, "build_engine", build_engine)
    monkeypatch.setattr(streamnb.engine, "supervise", supervise)
    config = tmp_path / "empty.toml"
    config.touch()
    done = CliRunner().invoke(app, ["run", str(config), *["--rebuild"] * wanted])

    assert done.exit_code == 0, done.output
    assert rebuilt == [wanted, False, False]
