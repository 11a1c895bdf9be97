"""Start engines by fork from a process that has imported everything, so that a campaign saves the imports.

Each line of standard input is a JSON list: a named pipe for the engine's standard error, then the arguments
of its command line. The answer is the engine's process id. The pipe's last line is ``exit`` and its code.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from streamnb import cli, config
from streamnb.engine import supervision
from streamnb.transports.confluent import source as confluent
from streamnb.transports.kafka import source as kafka

IMPORTED = (config, supervision, confluent, kafka)


def start(pipe: str, words: list[str]) -> None:
    """Fork a child that forks the engine, waits for it and reports its exit code."""
    if os.fork():
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(pipe, os.O_WRONLY), 2)
    engine = os.fork()
    if engine == 0:
        sys.argv = ["streamnb", *words]
        cli.main()
    os.write(1, f"{engine}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(engine, 0)[1])
    os.write(2, f"exit {code}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # this process does not wait for the children that wait for engines
    for line in sys.stdin:
        where, *command_line = json.loads(line)
        start(where, command_line)
