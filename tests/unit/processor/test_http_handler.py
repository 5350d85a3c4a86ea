"""The HTTP handler against a real server: what it sends, and what it makes of each answer."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from aiohttp import web

from processor.handlers.http import HttpHandler
from wait_registry.errors import PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.http import HttpHandlerSettings

HEADERS = (
    ("X-Tenant", b"blue"),
    ("X-Tenant", b"green"),
    ("traceparent", b"00-1-2-03"),
    ("X-Binary", b"\xff\x00"),
    ("X-Injected", b"a\r\nX-Evil: yes"),
    ("X-Null", None),
    ("X-Other", b"not chosen"),
)


def record_of(topic: str) -> Record:
    expires_at = datetime(2030, 1, 1, tzinfo=UTC)
    return Record(topic, 3, 42, 2, b"key", b"\x00body\xff", HEADERS, 2, "the-wait-id", "group", expires_at, "the-key")


RECORD = record_of("orders")
SETTINGS = HttpHandlerSettings(
    forward_headers=("x-tenant", "traceparent", "X-Binary", "X-Injected", "X-Null"),
    discard_statuses=(404,),
    content_type="application/json",
)


class FixedClock:
    """A clock that stands at 2030-01-01T00:00:00Z."""

    def now_ms(self) -> int:
        return 1_893_456_000_000

    def monotonic(self) -> float:
        return 0.0


def exchange(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
    record: Record = RECORD,
    calls: int = 1,
    path: str = "/orders",
) -> list[HandlerResult | BaseException]:
    """Serve ``answer``, call the handler some times at once, and return what came of it."""

    async def main() -> list[HandlerResult | BaseException]:
        application = web.Application()
        application.router.add_route("*", "/{rest:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        handler = HttpHandler(f"http://{host}:{port}{path}", SETTINGS, 4, FixedClock())
        await handler.open()
        try:
            return await asyncio.gather(*(handler.call(record) for _ in range(calls)), return_exceptions=True)
        finally:
            await handler.close()
            await runner.cleanup()

    return asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 9000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n",
    ],
    ids=["no status line", "long header", "bad length", "bad chunk"],
)
async def test_the_error_of_a_broken_answer_does_not_quote_the_url(answer: bytes) -> None:
    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"body")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        handler = HttpHandler(f"http://127.0.0.1:{port}/{{header:X-Tenant}}?token=S3CRET", SETTINGS, 4, FixedClock())
        await handler.open()
        with pytest.raises(TransientError, match="POST failed") as caught:
            await handler.call(RECORD)
        await handler.close()
    told = "".join(traceback.format_exception(caught.value))
    assert "S3CRET" not in told
    assert "/green" not in told
    assert len(str(caught.value)) < 300


def answering(status: int, retry_after: str = "") -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Retry-After": retry_after} if retry_after else None)

    return answer


def test_the_request_has_value_idempotency_key_and_origin() -> None:
    seen: list[tuple[str, bytes, list[tuple[str, str]]]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, await request.read(), list(request.headers.items())))
        return web.Response()

    assert exchange(answer) == [None]
    [(method, body, headers)] = seen
    assert (method, body) == ("POST", b"\x00body\xff")
    sent = dict(headers)
    assert sent["Content-Type"] == "application/json"
    assert sent["Idempotency-Key"] == "the-key"
    origin = [sent[f"X-Waitreg-{name}"] for name in ("Wait-Id", "Topic", "Partition", "Offset", "Delivery")]
    assert origin == ["the-wait-id", "orders", "3", "42", "2"]
    assert [value for name, value in headers if name == "X-Tenant"] == ["blue", "green"]
    assert sent["traceparent"] == "00-1-2-03"
    assert not {"X-Binary", "X-Injected", "X-Evil", "X-Null", "X-Other"} & set(sent), "only chosen, text-safe ones"


@pytest.mark.parametrize("topic", ["a\r\nX-Evil: yes", "a\nX-Evil: yes", "é" * 100_000, "\x01"])
def test_a_forged_lineage_adds_no_http_header(topic: str) -> None:
    seen: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response()

    [outcome] = exchange(answer, record_of(topic))
    assert outcome is None or isinstance(outcome, ValueError | PermanentError), "each ends as done or dead-lettered"
    assert all("X-Evil" not in headers for headers in seen)


def test_a_header_is_filled_into_the_url_byte_for_byte() -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.raw_path)
        return web.Response()

    assert exchange(answer, path="/orders/{header:X-Binary}/{header:X-Tenant}?a=b") == [None]
    assert seen == ["/orders/%FF%00/green?a=b"]


def test_a_null_value_is_an_empty_body() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=200 if await request.read() == b"" else 400)

    null = Record("orders", 0, 0, 0, None, None, (), 1, "id", "group", datetime(2030, 1, 1, tzinfo=UTC))
    assert exchange(answer, null) == [None]


@pytest.mark.parametrize(
    ("status", "result"),
    [*((status, None) for status in (200, 201, 202, 204, 299)), (404, Discard("the service answered 404 Not Found"))],
)
def test_2xx_is_done_and_a_status_to_discard_discards(status: int, result: Discard | None) -> None:
    assert exchange(answering(status)) == [result]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *[(TransientError, status) for status in SETTINGS.retry_statuses],
        *[(PermanentError, status) for status in (400, 401, 403, 409, 410, 422, 501, 505)],
    ],
)
def test_statuses_to_retry_are_transient_and_others_permanent(kind: type[Exception], status: int) -> None:
    [error] = exchange(answering(status))
    assert isinstance(error, kind)
    assert str(status) in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    calls = []

    async def answer(request: web.Request) -> web.Response:
        calls.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    [error] = exchange(answer)
    assert isinstance(error, PermanentError)
    assert "redirects are not followed" in str(error)
    assert calls == ["/orders"]


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [("7", 7.0), (format_datetime(datetime(2030, 1, 1, 0, 0, 9, tzinfo=UTC), usegmt=True), 9.0), ("soon", None)],
)
def test_retry_after_is_passed_on(text: str, pause_s: float | None) -> None:
    [error] = exchange(answering(503, text))
    assert isinstance(error, TransientError)
    assert error.retry_after_s == pause_s


async def call(handler: HttpHandler) -> None:
    await handler.open()
    try:
        await handler.call(RECORD)
    finally:
        await handler.close()


async def test_no_connection_is_transient_and_says_no_payload() -> None:
    with pytest.raises(TransientError, match="POST failed: ConnectionRefusedError") as failure:
        await call(HttpHandler("http://127.0.0.1:1/", SETTINGS, 1))
    assert "body" not in str(failure.value)


def test_an_answer_that_breaks_off_is_transient() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    [error] = exchange(answer)
    assert isinstance(error, TransientError)


def test_as_many_requests_run_at_once_as_records_may() -> None:
    running, most, together = 0, 0, asyncio.Barrier(4)

    async def answer(request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await together.wait()
        running -= 1
        return web.Response()

    assert exchange(answer, calls=12) == [None] * 12
    assert most == 4
