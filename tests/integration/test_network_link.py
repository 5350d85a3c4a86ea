"""The link that the network faults are made with does what it says, and counts it."""

from __future__ import annotations

import select
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.network import Link
from tests.support.tcp_proxy import FETCH, PRODUCE
from tests.support.waiting import wait_until

PATIENCE_S = 20.0


class Echo(socketserver.ThreadingTCPServer):
    """A server that answers every byte with itself and knows what it has received."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), self.Connection)
        self.received = 0
        self.resets = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    class Connection(socketserver.BaseRequestHandler):
        """One connection to it."""

        def handle(self) -> None:
            """Answer until the client ends."""
            assert isinstance(self.server, Echo)
            try:
                while data := self.request.recv(1_000_000):
                    self.server.received += len(data)
                    self.request.sendall(data)
            except OSError:
                self.server.resets += 1

    def has(self, received: int) -> bool:
        return self.received == received


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        yield server
        server.shutdown()


@pytest.fixture
def link(echo: Echo) -> Iterator[Link]:
    with Link(("127.0.0.1", echo.server_address[1])) as running:
        yield running


def connect(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=PATIENCE_S)


def exactly(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (part := client.recv(count - len(received))):
        received += part
    return received


def assert_echoes(client: socket.socket, words: bytes) -> None:
    client.sendall(words)
    assert exactly(client, len(words)) == words


def is_silent(side: socket.socket) -> bool:
    looking = select.poll()  # `select` takes no descriptor above 1023, and a long test run has more
    looking.register(side, select.POLLIN)
    return not looking.poll(50)


def test_bytes_and_an_orderly_end_are_carried(link: Link) -> None:
    sent = bytes(range(256)) * 40_000

    def say_all() -> None:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)

    with connect(link) as client:
        threading.Thread(target=say_all).start()
        assert exactly(client, len(sent)) == sent
        assert client.recv(1) == b""
    wait_until(lambda: link.figures.bytes_carried == 2 * len(sent), PATIENCE_S, "all bytes counted")
    assert link.figures.bytes_dropped == link.figures.bytes_held_back == link.figures.connections_cut == 0


def test_a_cut_and_a_refusal_reset_every_connection(link: Link, echo: Echo) -> None:
    for break_link in (link.cut, link.refuse):
        with connect(link) as first, connect(link) as second:
            assert_echoes(first, b"a")
            assert_echoes(second, b"b")
            assert break_link() == 2
            for client in (first, second):
                with pytest.raises(ConnectionResetError):
                    client.recv(1)
    wait_until(lambda: echo.resets == 4, PATIENCE_S, "the resets at the server")
    assert link.figures.connections_cut == 4
    with pytest.raises(ConnectionRefusedError):
        connect(link)
    link.allow()
    with connect(link) as client:
        assert_echoes(client, b"c")


def test_only_connections_that_produce_are_held(link: Link) -> None:
    fetch, produce = (struct.pack(">ih", 3, api_key) + b"x" for api_key in (FETCH, PRODUCE))
    with connect(link) as first, connect(link) as second, connect(link) as other:
        assert_echoes(first, produce)
        link.hold_requests(PRODUCE)
        first.sendall(fetch)
        assert_echoes(second, fetch + produce[:5])  # nothing is known of a request that has only begun
        second.sendall(produce[5:])
        assert_echoes(other, fetch)
        held = len(fetch) + len(produce[5:])
        wait_until(lambda: link.figures.bytes_held_back == held, PATIENCE_S, "what is held")
        assert is_silent(first)
        assert is_silent(second)
        link.flow()
        assert exactly(first, len(fetch)) == fetch
        assert exactly(second, len(produce) - 5) == produce[5:]
    assert link.figures.bytes_held_back == held


def test_young_connections_break_each_after_its_count_of_bytes(link: Link, echo: Echo) -> None:
    sent = b"x" * 100
    with connect(link) as old:
        assert_echoes(old, sent)
        link.break_young((150, 30, 130))  # the old connection has carried more than its count already
        with pytest.raises(ConnectionResetError):
            old.recv(1)
    for received in (30, 100):
        before = echo.received
        with connect(link) as young:
            young.sendall(sent)
            wait_until(partial(echo.has, before + received), PATIENCE_S, "the bytes that may pass")
            with pytest.raises(ConnectionResetError):
                exactly(young, len(sent))
    assert link.figures.connections_broken_young == 3
    link.flow()
    with connect(link) as client:
        assert_echoes(client, sent)
