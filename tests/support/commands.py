"""Commands of streamnb, each in a process of its own, without a second of imports for each.

A server that has imported everything forks once per command. What a test starts is a small client: it hands
its arguments, folder, environment and three standard streams to the server, and ends with the command's exit
code.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"x"], [0, 1, 2])
    server.sendall(json.dumps([os.getcwd(), dict(os.environ), sys.argv[2:]]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(16)))
"""


@cache
def forked_streamnb() -> list[str]:
    """Return the words that start ``streamnb``, to be followed by its arguments."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    address = f"{folder.name}/server"
    program = [sys.executable, "-m", "tests.support.commands", address]
    server = subprocess.Popen(program, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    atexit.register(server.communicate)
    atexit.register(server.kill)  # called first
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return [sys.executable, "-ISc", CLIENT, address]


def _answer(client: socket.socket) -> None:
    """Run a client's command in a child, and send the exit code."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    folder, environment, words = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    client.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["streamnb", *words]
    cli.main()


if __name__ == "__main__":
    from streamnb import cli, config, evaluation
    from streamnb.engine import supervision
    from streamnb.transports.confluent import source as confluent
    from streamnb.transports.kafka import source as kafka

    IMPORTED = (config, evaluation, supervision, confluent, kafka)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            caller, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _answer(caller)
            caller.close()
