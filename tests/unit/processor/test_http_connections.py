"""The connections of the HTTP handler: which answers count, and when a connection is used again."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from processor.handlers import http_connections
from processor.handlers.descriptors import NoThreadError
from processor.handlers.http import HttpHandler
from tests.support.certificates import Authority
from tests.unit.processor.parts import RECORD
from wait_registry.errors import PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.http import HttpHandlerSettings
from waitreg.local.ports import LOOPBACK

LIMIT_S = 60.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Sends ``answers``, one to each request; a request has no body if the test's record has none.

    Attributes:
        connections: how many were opened.
        requests: the heads that came.
    """

    def __init__(self, *answers: bytes, ends: bool = False) -> None:
        self._answers = iter(answers)
        self._ends = ends
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.sent = asyncio.Event()
        self.over = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(next(self._answers))
                await writer.drain()
                self.sent.set()
                if self._ends:
                    break
        except asyncio.LimitOverrunError:
            await self.over.wait()  # with a body that nothing reads
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def handler_for(
    server: Server, limit: int = 1, tls: ssl.SSLContext | None = None, host: str = LOOPBACK, **settings: object
) -> AsyncIterator[HttpHandler]:
    async with await asyncio.start_server(server.serve, LOOPBACK, 0, ssl=tls) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        url = f"{'http' if tls is None else 'https'}://{host}:{server.port}/orders"
        handler = HttpHandler(url, HttpHandlerSettings(**settings), limit)  # type: ignore[arg-type]
        await handler.open()
        try:
            async with asyncio.timeout(LIMIT_S):
                yield handler
        finally:
            server.over.set()
            await handler.close()


async def result_of(handler: HttpHandler, record: Record = RECORD) -> HandlerResult | Exception:
    try:
        return await handler.call(record)
    except (TransientError, PermanentError) as error:
        return error


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, None),
        (b"HTTP/1.1 204 No Content\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", None),
        (b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", Discard("the service answered 410 Gone")),
    ],
    ids=["after interim answers", "without a body", "chunked", "of a length", "discard"],
)
async def test_a_whole_answer_decides_and_its_connection_is_used_again(answer: bytes, expected: HandlerResult) -> None:
    server = Server(answer, answer)
    async with handler_for(server, discard_statuses=(410,)) as handler:
        assert [await result_of(handler) for _ in range(2)] == [expected] * 2
    assert (server.connections, len(server.requests)) == (1, 2)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\nas long as it takes",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nas long as it takes",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["HTTP/1.0", "not chunked", "close"],
)
async def test_an_answer_may_end_with_its_connection(answer: bytes) -> None:
    server = Server(answer, answer, ends=True)
    async with handler_for(server) as handler:
        assert [await result_of(handler) for _ in range(2)] == [None, None]
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf",
    ],
    ids=["nothing", "interim", "half a head", "half of a length", "half of chunks", "of encoded chunks", "close"],
)
async def test_a_connection_that_ends_within_an_answer_is_transient(answer: bytes) -> None:
    async with handler_for(Server(answer, ends=True)) as handler:
        error = await result_of(handler)
    assert isinstance(error, TransientError)
    assert "the connection ended before the answer was whole" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n" + 9 * (b"A: " + b"x" * 8180 + b"\r\n"),
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 8190 + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["endless head", "long line", "two framings", "two lengths", "folded"],
)
async def test_what_is_no_answer_is_transient(answer: bytes) -> None:
    async with handler_for(Server(answer)) as handler:
        error = await result_of(handler)
    assert isinstance(error, TransientError)
    assert "POST failed: BrokenAnswerError" in str(error)


@pytest.mark.parametrize("behind", [b"HTTP/1.1 500 Not Asked For\r\nContent-Length: 0\r\n\r\n", b"\r\nrubbish"])
async def test_what_no_request_asked_for_ends_the_connection(behind: bytes) -> None:
    server = Server(OK + behind, OK)
    async with handler_for(server) as handler:
        assert [await result_of(handler) for _ in range(2)] == [None, None]
    assert server.connections == 2


async def test_an_answer_to_an_upgrade_that_no_request_asked_for_is_permanent() -> None:
    server = Server(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    async with handler_for(server) as handler:
        error = await result_of(handler)
    assert isinstance(error, PermanentError)
    assert "101 Switching" in str(error)


async def test_a_trailer_asks_for_no_pause() -> None:
    chunked = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nRetry-After: 7\r\n\r\n"
    async with handler_for(Server(chunked)) as handler:
        error = await result_of(handler)
    assert isinstance(error, TransientError)
    assert error.retry_after_s is None


@pytest.mark.parametrize("tls", [False, True])
async def test_an_answer_before_the_end_of_the_request_decides(tls: bool, tmp_path: Path) -> None:
    """Nothing reads the body, which no buffer of the system can hold."""
    large = Record("orders", 0, 0, 0, None, b"x" * 40_000_000, (), 1, "id", "shop", None)
    early = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
    server = Server(early, early)
    async with handler_for(server, tls=context_of(tmp_path) if tls else None, retry_statuses=()) as handler:
        for _ in range(2):
            error = await result_of(handler, large)
            assert isinstance(error, PermanentError)
            assert "413" in str(error)
    assert server.connections == 2, "the rest of the body must not become the next request"


def context_of(folder: Path) -> ssl.SSLContext:
    """Return what a server shows whose certificate the test's handlers trust, by SSL_CERT_FILE."""
    own = Authority(folder, "our-authority").issue("right", f"IP:{LOOPBACK}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate_file, own.key_file)
    return context


@pytest.fixture(autouse=True)
def _trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path, "our-authority").certificate_file))


async def test_a_connection_is_not_used_again_after_a_cancelled_call() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhalf", OK)
    async with handler_for(server) as handler:
        call = asyncio.create_task(handler.call(RECORD))
        await server.sent.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await result_of(handler) is None
    assert server.connections == 2


@pytest.mark.parametrize("limit", ["_IDLE_S", "_AGE_S"])
async def test_idle_and_old_connections_are_replaced(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(OK, OK)
    async with handler_for(server) as handler:
        assert await result_of(handler) is None
        monkeypatch.setattr(http_connections, limit, 0.0)
        assert await result_of(handler) is None
    assert server.connections == 2


async def test_a_name_is_resolved_once_for_all_calls_and_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(socket, "getaddrinfo", counting(asked))
    monkeypatch.setattr(http_connections, "_AGE_S", 0.0)
    monkeypatch.setattr(http_connections, "_ADDRESSES_S", 0.0)
    server = Server(*[OK] * 8)
    async with handler_for(server, limit=4, host="localhost") as handler:
        assert await asyncio.gather(*(result_of(handler) for _ in range(4))) == [None] * 4
        assert asked == ["localhost"]
        assert await result_of(handler) is None
    assert asked == ["localhost"] * 2


def counting(asked: list[str]) -> Callable[..., object]:
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: object) -> object:
        asked.append(host)
        return real(host, *arguments)  # type: ignore[arg-type]

    return getaddrinfo


@pytest.mark.parametrize("topic", ["a\r\nX-Evil: yes", "a\nb", "\x00"])
async def test_a_topic_that_would_end_a_header_is_not_sent(topic: str) -> None:
    server = Server(OK)
    forged = Record(topic, 0, 0, 0, None, None, (), 1, "id", "shop", None)
    async with handler_for(server) as handler:
        error = await result_of(handler, forged)
    assert isinstance(error, PermanentError)
    assert server.requests == []


@pytest.mark.parametrize(
    ("url", "host", "credentials"),
    [
        ("http://[fe80::1%25eth0]:8080/a", "[fe80::1]:8080", None),
        ("http://[::1]/a", "[::1]", None),
        ("http://Shop.Example:80/a", "shop.example", None),
        ("http://u:p%40@shop/a", "shop", "Basic dTpwQA=="),
    ],
)
def test_host_and_credentials_come_from_the_url(url: str, host: str, credentials: str | None) -> None:
    record = Record("orders", 0, 0, 0, None, b"", (("authorization", b"Bearer own"),), 1, "id", "shop", None)
    head = HttpHandler(url, HttpHandlerSettings(forward_headers=("Authorization",)), 1).head_of(record, 0)
    assert f"\r\nHost: {host}\r\n".encode() in head
    sent = [line for line in head.decode().split("\r\n") if line.lower().startswith("authorization: ")]
    assert [line.partition(": ")[2] for line in sent] == [credentials or "Bearer own"]


async def test_no_thread_for_a_lookup_gives_the_record_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("wait_registry.daemon_threads._started", none_left)
    async with handler_for(Server(OK)) as handler:
        with pytest.raises(NoThreadError, match="can't start new thread"):
            await handler.call(RECORD)
