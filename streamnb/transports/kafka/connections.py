"""kafka-python's connections, kept to their time: what is not answered, or fails oddly, is tried again.

Four of its ways (3.0.12; README.md of its tests) would leave a client deaf or busy for good. A TLS handshake
has no deadline, and whoever asks for the connection meanwhile waits with it. The loop that hears of new
leaders and partitions ends with the first error that is not Kafka's. A connection that is refused after it
was made counts as one that succeeded, so that the next is tried at once. And why one failed is forgotten.
"""

# ruff: noqa: SLF001  the client has no public names for its connections

from __future__ import annotations

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

SETUP_TIMEOUT_MAX_MS = 10_000  # for a connection; it grows with every failure, to 30 s of its own accord
LATE_S = 0.1
DELAY_MIN_MS = 50  # before a producer looks again whether a connection is there; answers wake it anyway

_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)


class NetClient(KafkaNetClient):  # type: ignore[misc]
    """The connections of one client.

    Attributes
    ----------
    failure : BaseException or None
        Why the last connection that failed did.
    """

    def __init__(self, **configs: object) -> None:
        super().__init__(**configs)
        self.failure: BaseException | None = None
        manager, cluster = self._manager, self._manager.cluster
        manager.config["socket_connection_setup_timeout_max_ms"] = SETUP_TIMEOUT_MAX_MS
        self._begin, manager._connect = manager._connect, self._connect
        self._refresh, cluster.refresh_metadata = cluster.refresh_metadata, self._refresh_metadata

    def close(self, node_id: int | str | None = None) -> None:
        """Close one connection, or all of them and the IO thread."""
        if node_id is not None:
            super().close(node_id)
            return
        transports = [conn.transport for conn in self._manager._conns.values()]
        super().close()
        # The client half-closes and stops the thread that would have closed: the socket stays open.
        for transport in transports:
            if transport is not None:
                transport.abort()

    def connection_delay(self, node_id: int | str) -> float:
        """Milliseconds, which is what the producer takes them for, until a connection may be tried again."""
        return max(1000.0 * float(super().connection_delay(node_id)), DELAY_MIN_MS)

    def refused(self) -> bool:
        """Whether the last one failed for a name, a password or a certificate, and would again."""
        return isinstance(self.failure, _REFUSALS) or isinstance(
            getattr(self.failure, "__context__", None), ssl.SSLCertVerificationError
        )

    async def _connect(self, node: Any, conn: Any, *, timeout_at: float, **more: object) -> None:  # noqa: ANN401
        manager, net = self._manager, self._manager._net
        failures, task = self._failures(node.node_id), net._current

        def end() -> None:
            late = KafkaConnectionError("not connected in time")
            if task.state is TaskState.WAIT_IO:  # in a handshake: everything after it has a deadline
                waited_for = [key.fileobj for key in net._selector.get_map().values() if task in key.data]
                task.inject_exc(late)
                net._add_ready_task(task)
                for one in waited_for:
                    net.call_soon(one.close)
            elif conn.initializing:
                conn.close(late)

        # Where the client has a deadline itself, it comes first.
        deadline = net.call_at(timeout_at + LATE_S, end)
        try:
            await self._begin(node, conn, timeout_at=timeout_at, **more)
        finally:
            net.cancel(deadline)
        if conn.closed and self._failures(node.node_id) <= failures:
            manager._backoff[node.node_id] = (failures, 0.0, 0.0)
            manager.update_backoff(node.node_id)
        if conn.init_future.failed():
            self.failure = conn.init_future.exception
            if self.refused() and not manager.bootstrapped:
                # Where the client looks before it tries again; it never gets to note it there itself, and
                # would say after half a minute that nobody answered.
                manager._auth_failures[node.node_id] = self.failure

    def _failures(self, node_id: int | str) -> int:
        """How often in a row a connection failed."""
        return int(self._manager._backoff.get(node_id, (0,))[0])

    async def _refresh_metadata(self, node_id: int | str | None = None) -> None:
        try:
            await self._refresh(node_id)
        except KafkaError:
            raise
        except Exception as error:  # of a file, of a provider of tokens: anything else would end the loop
            raise KafkaConnectionError(repr(error)) from error
