"""The link that network faults are made with does what it says, and counts it."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from tests.support.kafka_requests import PRODUCE
from tests.support.network import Link
from tests.support.tcp_proxy import FETCH
from tests.support.waiting import wait_until

PATIENCE_S = 20.0
# More than all buffers on the way hold, a socket's included.
MUCH = 64_000_000


class Echo:
    """A server that answers every byte with itself, and knows what it has received."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target: tuple[str, int] = self._listener.getsockname()
        self.received = 0
        self.resets = 0
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for each in (self._listener, *self.connections):
            each.close()

    def has_received(self, count: int) -> bool:
        return self.received == count

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _answer(self, connection: socket.socket) -> None:
        try:
            while data := connection.recv(1_000_000):
                self.received += len(data)
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except ConnectionResetError:
            self.resets += 1
        except OSError:
            return


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def link(echo: Echo) -> Iterator[Link]:
    with Link(echo.target) as running:
        yield running


def connect(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=PATIENCE_S)


def until_reset(client: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionResetError):
        while data := client.recv(1_000_000):
            received += data
        pytest.fail("it ended in order")
    return received


def exactly(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (part := client.recv(count - len(received))):
        received += part
    return received


def say_all(client: socket.socket, words: bytes) -> None:
    client.sendall(words)
    client.shutdown(socket.SHUT_WR)


def is_silent(side: socket.socket) -> bool:
    # Without a time-out of its own on the socket: the echo's thread reads from its side meanwhile.
    looking = select.poll()  # `select` takes no descriptor above 1023, and a long test run has more
    looking.register(side, select.POLLIN)
    readable = looking.poll(50)
    return not readable


def test_bytes_come_out_as_they_went_in_and_an_end_is_carried_too(link: Link) -> None:
    sent = bytes(range(256)) * 40_000
    with connect(link) as client:
        threading.Thread(target=say_all, args=(client, sent)).start()
        assert exactly(client, len(sent)) == sent
        assert client.recv(1) == b""
    wait_until(lambda: link.figures.bytes_carried == 2 * len(sent), PATIENCE_S, "all bytes counted")
    assert link.figures.bytes_dropped == link.figures.bytes_held_back == link.figures.connections_cut == 0


def test_a_cut_resets_every_connection_and_takes_new_ones(link: Link, echo: Echo) -> None:
    with connect(link) as first, connect(link) as second:
        for client in (first, second):
            client.sendall(b"a")
            assert client.recv(1) == b"a"
        assert link.cut() == 2
        for client in (first, second):
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    wait_until(lambda: echo.resets == 2, PATIENCE_S, "the resets at the server")
    with connect(link) as third:
        third.sendall(b"b")
        assert third.recv(1) == b"b"
    assert link.figures.connections_cut == 2


def test_a_refusal_lasts_until_it_is_allowed_again_at_the_same_port(link: Link) -> None:
    with connect(link) as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        assert link.refuse() == 1
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(link)
    link.allow()
    with connect(link) as client:
        client.sendall(b"b")
        assert client.recv(1) == b"b"


def test_connections_that_produce_are_held_and_others_flow_and_nothing_is_lost(link: Link, echo: Echo) -> None:
    fetch, produce = (struct.pack(">ih", 3, api_key) + b"x" for api_key in (FETCH, PRODUCE))
    with connect(link) as first, connect(link) as second, connect(link) as other:
        first.sendall(produce)
        assert exactly(first, len(produce)) == produce
        link.hold_requests(PRODUCE)
        first.sendall(fetch)
        second.sendall(fetch + produce[:5])
        assert exactly(second, len(fetch) + 5) == fetch + produce[:5], "nothing is known of what has only begun"
        second.sendall(produce[5:])
        other.sendall(fetch)
        assert exactly(other, len(fetch)) == fetch
        held = len(fetch) + len(produce[5:])
        wait_until(lambda: link.figures.bytes_held_back == held, PATIENCE_S, "what is held")
        assert is_silent(first)
        assert is_silent(second)
        link.flow()
        assert exactly(first, len(fetch)) == fetch
        assert exactly(second, len(produce) - 5) == produce[5:]
    assert link.figures.bytes_held_back == held


def test_a_stall_moves_no_byte_and_loses_none(link: Link, echo: Echo) -> None:
    with connect(link) as client:
        client.sendall(b"before")
        assert exactly(client, 6) == b"before"
        link.stall()
        client.sendall(b"behind")
        wait_until(lambda: link.figures.bytes_held_back == 6, PATIENCE_S, "the bytes held back")
        assert is_silent(client)
        assert echo.received == 6
        with connect(link) as late:
            late.sendall(b"late")
            assert is_silent(late)
            link.flow()
            assert exactly(late, 4) == b"late"
        assert exactly(client, 6) == b"behind"
    assert link.figures.bytes_dropped == 0


def test_a_client_that_leaves_in_a_stall_is_gone_for_the_server_when_it_is_over(link: Link, echo: Echo) -> None:
    client = connect(link)
    client.sendall(b"a")
    assert client.recv(1) == b"a"
    link.stall()
    client.close()
    assert is_silent(echo.connections[0])
    link.flow()
    wait_until(lambda: link.figures.bytes_carried == 2 and not link._pairs, PATIENCE_S, "the end of the connection")


def test_half_open_the_server_hears_and_is_not_heard(link: Link, echo: Echo) -> None:
    with connect(link) as client:
        link.half_open()
        client.sendall(b"heard")
        wait_until(lambda: echo.received == 5, PATIENCE_S, "the bytes at the server")
        wait_until(lambda: link.figures.bytes_held_back == 5, PATIENCE_S, "the answer held back")
        assert is_silent(client)
        link.cut()
    assert link.figures.bytes_dropped == 5


def test_young_connections_break_each_after_its_count_of_bytes_in_the_middle_of_an_answer_too(
    link: Link, echo: Echo
) -> None:
    sent = b"x" * 100
    with connect(link) as old:
        old.sendall(sent)
        assert exactly(old, len(sent)) == sent
        # The old one was the first: it has carried more than its count already.
        link.break_young((150, 30, 130))
        with pytest.raises(ConnectionResetError):
            old.recv(1)
    for received, answered in ((30, 0), (100, 30)):
        before = echo.received
        with connect(link) as young:
            young.sendall(sent)
            wait_until(partial(echo.has_received, before + received), PATIENCE_S, "the bytes that may go on")
            assert len(until_reset(young)) <= answered
    assert link.figures.connections_broken_young == 3
    link.flow()
    with connect(link) as client:
        client.sendall(sent)
        assert exactly(client, len(sent)) == sent
    assert link.figures.connections_broken_young == 3


def test_a_slow_link_carries_so_much_a_second_and_later(link: Link) -> None:
    with connect(link) as client:
        link.slow(bytes_per_s=100_000, delay_s=0.1)
        begun = time.monotonic()
        client.sendall(bytes(50_000))
        assert len(exactly(client, 50_000)) == 50_000
        # Both ways are late by a tenth of a second; the last of five portions goes when the four before it have gone.
        assert time.monotonic() - begun >= 0.2 + 0.4
        assert link.figures.bytes_slowed == 100_000


def test_who_sends_more_than_fits_into_a_stall_waits(link: Link) -> None:
    link.stall()
    with connect(link) as client:
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(MUCH))
    assert 0 < link.figures.bytes_held_back < MUCH


def test_a_server_that_is_gone_shows_as_a_reset(link: Link, echo: Echo) -> None:
    echo.close()
    # It may come before connecting has ended.
    with pytest.raises(ConnectionResetError), connect(link) as client:
        client.recv(1)
