"""What a peer sends is received completely, and in pieces of a limited size."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest

from streamnb.transports.kafka.connections import RECEIVE_BYTES, RECEIVED_BYTES_MAX, _receive

SENT_BYTES = 3 * RECEIVED_BYTES_MAX + 12_345


class Endless:
    """A socket whose peer always sends faster than it is read, up to ten times the limit."""

    def __init__(self) -> None:
        self.left = 10 * RECEIVED_BYTES_MAX

    def recv(self, n: int) -> bytes:
        """Return as many bytes as are asked for."""
        if not self.left:
            raise BlockingIOError
        size = min(n, self.left)
        self.left -= size
        return b"x" * size


def anonymous(side: int) -> ssl.SSLContext:
    """Return a context of a TLS peer that needs no certificate."""
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")
    return context


def plain(sock: socket.socket) -> socket.socket:
    """Return the socket as it is."""
    return sock


def served(sock: socket.socket) -> socket.socket:
    """Return the server's end of a TLS connection."""
    return anonymous(ssl.PROTOCOL_TLS_SERVER).wrap_socket(sock, server_side=True)


def connected(sock: socket.socket) -> socket.socket:
    """Return the client's end of a TLS connection."""
    return anonymous(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(sock)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two connected sockets."""
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_a_peer_that_never_stops_sending_does_not_fill_the_memory() -> None:
    """The client gets the bytes in between, and ends the connection if they are no answers."""
    data, error = _receive(Endless())  # type: ignore[arg-type]
    assert RECEIVED_BYTES_MAX <= len(data) < RECEIVED_BYTES_MAX + RECEIVE_BYTES
    assert error is None


@pytest.mark.parametrize(("server", "client"), [(plain, plain), (served, connected)], ids=["plain", "TLS"])
def test_what_is_left_wakes_the_client_again(
    ends: tuple[socket.socket, socket.socket],
    server: Callable[[socket.socket], socket.socket],
    client: Callable[[socket.socket], socket.socket],
) -> None:
    """No byte of a long answer stays behind, also in the buffers of a TLS connection."""

    def send() -> None:
        with server(ends[0]) as sock:
            sock.sendall(bytes(SENT_BYTES))
            said.wait(30)

    said = threading.Event()
    sender = threading.Thread(target=send)
    sender.start()
    received = 0
    try:
        with client(ends[1]) as sock:
            sock.setblocking(False)
            while received < SENT_BYTES:
                assert select.select([sock], [], [], 10)[0], f"{received} of {SENT_BYTES} bytes"
                data, error = _receive(sock)
                assert error is None
                assert len(data) < RECEIVED_BYTES_MAX + 2 * RECEIVE_BYTES
                received += len(data)
    finally:
        said.set()
        sender.join()
    assert received == SENT_BYTES
