"""The server of the metrics page: it limits the number of connections and the duration of each.

prometheus-client's own server starts a thread per connection and waits for its request without a limit, so
ten thousand idle connections would be ten thousand threads beside the stream.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Thread, Timer
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CONNECTIONS_MAX = 16  # a further one takes the place of the oldest
FREED_S_MAX = 1.0  # for the oldest to end
CONNECTION_S_MAX = 10.0  # for request and response
_log = logging.getLogger("streamnb.metrics")


def serve_metrics(
    registry: CollectorRegistry, is_ready: Callable[[], bool], host: str, port: int
) -> Callable[[], None]:
    """Serve ``/metrics``, ``/live`` and ``/ready`` from a thread, which ends with the process at the latest.

    Parameters
    ----------
    registry : CollectorRegistry
        What ``/metrics`` shows.
    is_ready : callable
        Whether ``/ready`` answers 200, or 503.
    host : str
    port : int
        1 to 65535.

    Returns
    -------
    callable
        Stops the server.

    Raises
    ------
    OSError
        The address is in use, or does not belong to this machine.
    """
    server = _Server(host, port)
    server.set_app(_routes(make_wsgi_app(registry), is_ready))
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop


def _routes(metrics: WSGIApplication, is_ready: Callable[[], bool]) -> WSGIApplication:
    """Return the application that answers each path; one that is unknown is not found."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return metrics(environ, start_response)
        if path == "/live":
            status = "200 OK"
        elif path == "/ready":
            status = "200 OK" if is_ready() else "503 Service Unavailable"
        else:
            status = "404 Not Found"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{status}\n".encode()]

    return answer


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        _log.debug(format, *args)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # with the default of 5, a client in a crowd would wait for a retry

    def __init__(self, host: str, port: int) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, address = found[0][0], found[0][4]
        self._free = BoundedSemaphore(CONNECTIONS_MAX)
        self._open: dict[int, socket.socket] = {}  # by id, the oldest first
        super().__init__((str(address[0]), int(address[1])), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver's
        if not self._free.acquire(blocking=False):
            # Else clients that never finish their requests would keep the page from everybody else.
            for oldest in list(self._open.values())[:1]:
                _hang_up(oldest)
            if not self._free.acquire(timeout=FREED_S_MAX):
                _log.debug("closed the connection of %s: too many are open", client_address)
                self.shutdown_request(request)
                return
        self._open[id(request)] = request
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread could be started
            self._close(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        hang_up = Timer(CONNECTION_S_MAX, _hang_up, [request])
        hang_up.daemon = True
        hang_up.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            hang_up.cancel()
            self._close(request)

    def _close(self, request: socket.socket) -> None:
        """Make the place of a connection free."""
        del self._open[id(request)]
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        del request
        _log.debug("the request of %s failed", client_address, exc_info=True)


def _hang_up(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError as error:  # the request ended at the same moment
        _log.debug("the connection was closed already: %s", error)
