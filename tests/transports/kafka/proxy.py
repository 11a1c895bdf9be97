"""A TCP proxy between a client and its broker that cuts, refuses, ignores or slows connections."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Literal, Self

from deploy.kafka.broker import free_port

Cut = Literal["now", "before the response"]
READ_BYTES = 1 << 16


class Proxy:
    """Passes bytes to and from a broker; a context manager with its own thread.

    Parameters
    ----------
    port : int
        The port of the broker's listener that advertises this proxy.
    listen : int
        The port of the proxy.

    Attributes
    ----------
    asked : int
        The number of connections that clients have opened.
    """

    def __init__(self, port: int, listen: int) -> None:
        self._port, self._listen = port, listen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self.asked = 0
        self._held: list[asyncio.StreamWriter] = []
        self._cut_responses = self._refused = self._ignored = False
        self._delay_s, self._read_bytes = 0.0, READ_BYTES
        self._listening = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self, when: Cut) -> None:
        """Reset every connection, now or instead of passing on the broker's next response."""
        self._loop.call_soon_threadsafe(self._cut_all if when == "now" else self._arm)

    def refuse(self, refused: bool) -> None:
        """Reset every connection and every new one, until called with False."""
        self._refused = refused
        if refused:
            self.cut("now")

    def ignore(self, ignored: bool) -> None:
        """Reset every connection, and accept new ones without any answer, until called with False."""
        self._ignored = ignored
        if ignored:
            self.cut("now")

    def slow(self, delay_s: float, read_bytes: int = READ_BYTES) -> None:
        """Delay each piece of at most `read_bytes`, in both directions, by `delay_s`."""
        self._delay_s, self._read_bytes = delay_s, read_bytes

    def fast(self) -> None:
        """Undo `slow`; bytes that already wait keep their delay."""
        self.slow(0.0)

    def _arm(self) -> None:
        self._cut_responses = True

    def _cut_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(self._serve, "127.0.0.1", self._listen)
        server = self._loop.run_until_complete(serving)
        self._listening.set()
        self._loop.run_forever()
        server.close()
        self._writers |= set(self._held)
        self._cut_all()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        if self._refused:
            writer.transport.abort()
            return
        if self._ignored:
            self._held.append(writer)
            return
        try:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, to_broker}
        self._writers |= both
        ways = (
            self._pass(reader, to_broker, responses=False),
            self._pass(from_broker, writer, responses=True),
        )
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*ways)
        finally:
            self._writers -= both
            for one in both:
                one.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, responses: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(self._read_bytes):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                if responses and self._cut_responses:
                    self._cut_responses = False
                    self._cut_all()
                    return
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


def listeners(port: int, behind: int, before: int) -> dict[str, str]:
    """Return settings for a broker with a second listener, which sends its clients to a proxy.

    Clients of the first listener do not pass the proxy.

    Parameters
    ----------
    port : int
        The port of the first listener.
    behind, before : int
        The ports of the second listener and of the proxy.
    """
    direct, controller = f"PLAINTEXT://127.0.0.1:{port}", free_port()
    return {
        "listeners": f"{direct},PROXIED://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"{direct},PROXIED://127.0.0.1:{before}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
    }
