"""kafka-python's connections with deadlines, backoff and error causes that 3.0.12 leaves out.

What a broker sends is read in larger pieces than the client's 4,096 bytes, which saves a third of the time of
consuming. Five defects of 3.0.12 are worked around here (tests/transports/kafka/README.md):

- A TLS handshake has no deadline. A client whose broker does not answer it waits forever.
- The loop that refreshes the metadata ends with the first error that is not a `KafkaError`. The client then
  never learns of new leaders and partitions.
- A connection that the broker closes right after accepting it counts as a success, so the client reconnects
  without a pause, hundreds of times a second.
- The cause of a failed connection is lost, so a wrong password looks like a broker that does not answer.
- Data that is read together with the end of the connection is dropped. A broker closes the connection right
  after it has refused a password, so its answer is lost whenever the client is a moment late.
"""

# ruff: noqa: SLF001  the client has no public names for the state of its connections

from __future__ import annotations

import socket
import ssl
from typing import Any

from kafka.errors import (
    AuthorizationError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import TaskState

SETUP_TIMEOUT_MAX_MS = 10_000  # the setup timeout doubles with each failure, up to this; kafka-python: 30 s
LATE_S = 0.1  # lets a deadline of the client itself come first
RECEIVE_BYTES = 1 << 16  # of a socket by one call; larger pieces are not faster
RECEIVED_BYTES_MAX = 1 << 22  # before the client looks at them: it ends a connection that sends nonsense
DELAY_MIN_MS = 50  # the least pause before the sender checks a connection again; a response wakes it earlier

_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)


class NetClient(KafkaNetClient):  # type: ignore[misc]
    """The connections of one client of kafka-python.

    Attributes
    ----------
    failure : BaseException or None
        The first refusal, which a retry cannot fix; without one, the cause of the last failed connection.
    """

    def __init__(self, **configs: object) -> None:
        super().__init__(**configs)
        self.failure: BaseException | None = None
        manager, cluster = self._manager, self._manager.cluster
        manager.config["socket_connection_setup_timeout_max_ms"] = SETUP_TIMEOUT_MAX_MS
        self._begin, manager._connect = manager._connect, self._connect
        self._build, manager._build_transport = manager._build_transport, self._build_transport
        self._refresh, cluster.refresh_metadata = cluster.refresh_metadata, self._refresh_metadata

    def close(self, node_id: int | str | None = None) -> None:
        """Close one connection, or all connections and the IO thread."""
        if node_id is not None:
            super().close(node_id)
            return
        transports = [conn.transport for conn in self._manager._conns.values()]
        super().close()
        # 3.0.12 shuts a socket down for writing and stops the thread that would close it: it stays open.
        for transport in transports:
            if transport is not None:
                transport.abort()

    def connection_delay(self, node_id: int | str) -> float:
        """Return the milliseconds until a connection may be tried again, at least `DELAY_MIN_MS`.

        3.0.12 returns seconds, which its producer takes for milliseconds, and 0 while a connection is being
        made: the sender thread would check it in a busy loop.
        """
        return max(1000.0 * float(super().connection_delay(node_id)), DELAY_MIN_MS)

    def refused(self) -> bool:
        """Return whether a connection failed with an authentication error, which a retry cannot fix."""
        return _is_refusal(self.failure)

    async def _connect(self, node: Any, conn: Any, *, timeout_at: float, **more: object) -> None:  # noqa: ANN401
        manager, net = self._manager, self._manager._net
        failures, task = self._failures(node.node_id), net._current

        def end() -> None:
            late = KafkaConnectionError("not connected in time")
            if task.state is TaskState.WAIT_IO:  # in the TLS handshake, the only step without a deadline
                waited_for = [key.fileobj for key in net._selector.get_map().values() if task in key.data]
                task.inject_exc(late)
                net._add_ready_task(task)
                for one in waited_for:
                    net.call_soon(one.close)
            elif conn.initializing:
                conn.close(late)

        # `LATE_S` lets a deadline of the client itself come first.
        deadline = net.call_at(timeout_at + LATE_S, end)
        try:
            await self._begin(node, conn, timeout_at=timeout_at, **more)
        finally:
            net.cancel(deadline)
        # 3.0.12 has reset the backoff although the connection failed in its setup: count the failure.
        if conn.closed and self._failures(node.node_id) <= failures:
            manager._backoff[node.node_id] = (failures, 0.0, 0.0)
            manager.update_backoff(node.node_id)
        if conn.init_future.failed():
            failure = conn.init_future.exception
            if not self.refused():  # another broker that is away must not hide a refusal
                self.failure = failure
            if _is_refusal(failure) and not manager.bootstrapped:
                # The client checks this entry before it retries, but 3.0.12 never sets it, because an
                # authentication error does not reach the code that would. Without the entry the client
                # would retry for half a minute and then report that no broker answered.
                manager._auth_failures[node.node_id] = failure

    async def _build_transport(self, node: Any, **more: object) -> Any:  # noqa: ANN401
        transport, net = await self._build(node, **more), self._manager._net

        def received() -> tuple[bytes, BaseException | None]:
            data, error = _receive(transport._sock)
            if not data or error is None:
                return data, error

            def end() -> None:
                net.call_soon(lambda: transport.abort(error))

            # 3.0.12 would abort at once and drop the data. The abort has to come behind the task that the
            # data wakes, such as the one that logs in, and that task is queued only after this function.
            net.call_soon(end)
            return data, None

        transport._sock_recv = received
        return transport

    def _failures(self, node_id: int | str) -> int:
        """Return how many times in a row the connections to a node failed."""
        return int(self._manager._backoff.get(node_id, (0,))[0])

    async def _refresh_metadata(self, node_id: int | str | None = None) -> None:
        try:
            await self._refresh(node_id)
        except KafkaError:
            raise
        except (
            Exception
        ) as error:  # such as a certificate file that is being replaced: it would end the metadata loop
            raise KafkaConnectionError(repr(error)) from error


def _receive(sock: socket.socket) -> tuple[bytes, KafkaError | None]:
    """Return what a socket holds now, about `RECEIVED_BYTES_MAX` at most, and why it cannot be read any more.

    What a TLS connection has decrypted already has to be read: it does not wake the client again. The rest
    does, so that a peer that never stops sending does not fill the memory.
    """
    pieces: list[bytes] = []
    left = RECEIVED_BYTES_MAX
    while left > 0 or (isinstance(sock, ssl.SSLSocket) and sock.pending()):
        try:
            piece = sock.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b"".join(pieces), None
        except (OSError, ValueError) as error:  # ValueError: the socket was closed meanwhile
            return b"".join(pieces), KafkaConnectionError(error)
        if not piece:
            return b"".join(pieces), KafkaConnectionError("socket disconnected")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces), None


def _is_refusal(failure: BaseException | None) -> bool:
    untrusted = isinstance(getattr(failure, "__context__", None), ssl.SSLCertVerificationError)
    return untrusted or isinstance(failure, _REFUSALS)
