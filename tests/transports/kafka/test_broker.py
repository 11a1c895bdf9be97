"""The script behind `make kafka`, beside a broker that runs already; a sleeping process stands in for it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.kafka.broker import main

PORT = 19_092


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a broker that was started on a port."""
    properties = tmp_path / "server.properties"
    properties.write_text(f"advertised.listeners=PLAINTEXT://127.0.0.1:{PORT}\n")
    sleep = [sys.executable, "-c", "import time; time.sleep(300)", str(properties)]
    with subprocess.Popen(sleep) as process:
        while (
            str(properties) not in Path(f"/proc/{process.pid}/cmdline").read_text()
        ):  # empty while it begins
            time.sleep(0.01)
        (tmp_path / "broker.pid").write_text(f"{process.pid}\n")
        yield tmp_path
        process.kill()


def test_N7_another_port_than_the_running_brokers_is_refused(
    running: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was ignored, and the old address printed; the error says how to stop the broker."""
    assert main(["start", "--dir", str(running), "--port", str(PORT + 1)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"already runs in {running}, on port {PORT} instead of {PORT + 1}" in said.err
    assert "make kafka-stop" in said.err


def test_N7_the_running_brokers_own_port_gives_its_address(
    running: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To start it twice does nothing."""
    assert main(["start", "--dir", str(running), "--port", str(PORT)]) == 0
    assert capsys.readouterr().out == f"127.0.0.1:{PORT}\n"
