"""The gRPC handler against a real server: what it sends, and what it makes of each answer."""

from __future__ import annotations

import asyncio
import errno
import os
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from grpc import aio

from processor.handlers.grpc import GrpcHandler
from processor.handlers.open_handler import CURRENT_ATTEMPT
from tests.support.grpc_service import call_until, serving
from tests.support.handler_proto import discarded, retry_info, status_with
from wait_registry.errors import PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.grpc import RETRY_STATUSES, GrpcHandlerSettings, GrpcStatus
from waitreg.local.ports import free_ports

LIMIT_S = 60.0
HEADERS = (("Tenant", b"blue"), ("tenant", b"\xff\x00"), ("none", None), ("empty", b""), ("", b"no name"))
EXPIRES_AT = datetime(2030, 1, 1, tzinfo=UTC)
RECORD = Record(
    "orders", 3, 42, 2, b"key", b"\x00body\xff", HEADERS, 2, "the-wait-id", "shop", EXPIRES_AT, "the-key", "append"
)
SETTINGS = GrpcHandlerSettings(forward_headers=("tenant", "None"), discard_statuses=(GrpcStatus.ALREADY_EXISTS,))
REFUSED = sorted(set(GrpcStatus) - set(RETRY_STATUSES) - {GrpcStatus.ALREADY_EXISTS})


async def call(address: str, record: Record = RECORD, timeout_s: float = LIMIT_S) -> HandlerResult:
    """Open a handler, call it once and close it."""
    handler = GrpcHandler(address, SETTINGS, timeout_s, 4)
    await handler.open()
    try:
        return await asyncio.wait_for(handler.call(record), LIMIT_S)
    finally:
        await handler.close()


def failing(status: str, *trailers: tuple[str, bytes], details: str = "as the test wants") -> Any:
    """Return an answer with this status."""

    async def answer(record: Any, context: aio.ServicerContext) -> bytes:
        await context.abort(grpc.StatusCode[status], details, trailers)
        raise AssertionError("abort raises")

    return answer


async def endless(record: Any, context: aio.ServicerContext) -> bytes:
    return await asyncio.get_running_loop().create_future()


async def test_the_request_has_the_whole_record_and_its_metadata() -> None:
    async with serving() as service:
        CURRENT_ATTEMPT.set(3)
        # gRPC rounds a timeout of a minute up to tenths of a second (timeout_encoding.cc).
        assert await call(service.address, timeout_s=LIMIT_S - 1) is None
    [seen], [metadata], [remaining_s] = service.requests, service.metadata, service.remaining_s
    assert (seen.topic, seen.partition, seen.offset) == ("orders", 3, 42)
    assert (seen.timestamp_ms, seen.timestamp_type) == (2, 2)
    assert (seen.key, seen.value) == (b"key", b"\x00body\xff")
    assert [(one.name, one.value if one.HasField("value") else None) for one in seen.headers] == list(HEADERS)
    assert (seen.group, seen.wait_id, seen.idempotency_key) == ("shop", "the-wait-id", "the-key")
    assert (seen.delivery, seen.attempt, seen.expires_at_ms) == (2, 3, EXPIRES_AT.timestamp() * 1000)
    assert (metadata["idempotency-key"], metadata["x-waitreg-wait-id"]) == ("the-key", "the-wait-id")
    assert metadata["tenant"] == "blue", "a value that is no plain text travels in the request alone"
    assert not {"none", "empty"} & set(metadata)
    assert remaining_s is not None
    assert 0 < remaining_s <= LIMIT_S, "the deadline travels with the call"


@pytest.mark.parametrize("content", [None, b""], ids=["null", "empty"])
async def test_null_and_empty_stay_apart(content: bytes | None) -> None:
    async with serving() as service:
        await call(service.address, Record("orders", 0, 0, -1, content, content, (), 1, "id", "shop", None))
    [seen] = service.requests
    assert [seen.HasField(name) for name in ("key", "value", "expires_at_ms")] == [content is not None] * 2 + [False]
    assert seen.timestamp_ms == -1


async def test_a_response_with_a_discard_discards() -> None:
    async def answer(record: Any, context: aio.ServicerContext) -> bytes:
        return discarded("the order was deleted")

    async with serving(answer) as service:
        assert await call(service.address) == Discard("the order was deleted")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, TransientError) for status in sorted(set(RETRY_STATUSES) - {GrpcStatus.DEADLINE_EXCEEDED})),
        *((status, PermanentError) for status in REFUSED),
        (GrpcStatus.DEADLINE_EXCEEDED, TimeoutError),  # the service's own
    ],
)
async def test_statuses_to_retry_are_transient_and_others_permanent(status: GrpcStatus, kind: type[Exception]) -> None:
    async with serving(failing(status)) as service:
        with pytest.raises(kind, match=f"ended with {status}: as the test wants") as caught:
            await call(service.address)
    assert getattr(caught.value, "retry_after_s", None) is None


async def test_a_service_without_descriptors_is_no_lack_of_ours() -> None:
    async with serving(failing("UNAVAILABLE", details=os.strerror(errno.EMFILE))) as service:
        with pytest.raises(TransientError, match="Too many open files"):
            await call(service.address)


async def test_a_status_to_discard_discards() -> None:
    async with serving(failing("ALREADY_EXISTS")) as service:
        assert await call(service.address) == Discard("the call ended with ALREADY_EXISTS: as the test wants")


async def test_the_deadline_ends_the_call_here_and_there() -> None:
    async with serving(endless) as service:
        with pytest.raises(TimeoutError, match="DEADLINE_EXCEEDED"):
            await call(service.address, timeout_s=0.5)
        await asyncio.wait_for(service.cancelled.wait(), LIMIT_S)


async def test_a_cancelled_attempt_cancels_the_call() -> None:
    started = asyncio.Event()

    async def answer(record: Any, context: aio.ServicerContext) -> bytes:
        started.set()
        return await endless(record, context)

    async with serving(answer) as service:
        attempt = asyncio.create_task(call(service.address))
        await asyncio.wait_for(started.wait(), LIMIT_S)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        await asyncio.wait_for(service.cancelled.wait(), LIMIT_S)


async def test_a_retry_info_asks_for_a_pause() -> None:
    details = ("grpc-status-details-bin", status_with(retry_info(7, 500_000_000)))
    async with serving(failing("RESOURCE_EXHAUSTED", details)) as service:
        with pytest.raises(TransientError) as caught:
            await call(service.address)
    assert caught.value.retry_after_s == 7.5


async def test_no_connection_is_transient_and_says_no_payload() -> None:
    with pytest.raises(TransientError, match=r"ended with UNAVAILABLE: .*refused") as failure:
        await call(f"grpc://127.0.0.1:{free_ports(1)[0]}")
    assert "body" not in str(failure.value)


async def test_calls_succeed_again_once_the_service_is_back() -> None:
    [port] = free_ports(1)
    async with serving(port=port) as service:
        handler = GrpcHandler(service.address, SETTINGS, LIMIT_S, 4)
        await handler.open()
        await handler.call(RECORD)
    with pytest.raises(TransientError, match="UNAVAILABLE"):
        await handler.call(RECORD)
    async with serving(port=port) as again:
        async with asyncio.timeout(LIMIT_S):
            await call_until(handler, RECORD, lambda: again.requests)
    await handler.close()


async def test_as_many_calls_run_at_once_as_records_may() -> None:
    """They need three connections to a server with the least limit that RFC 9113 recommends."""
    together = asyncio.Barrier(250)

    async def answer(record: Any, context: aio.ServicerContext) -> bytes:
        await together.wait()
        return b""

    async with serving(answer, options=(("grpc.max_concurrent_streams", 100),)) as service:
        handler = GrpcHandler(service.address, SETTINGS, LIMIT_S, 250)
        await handler.open()
        await asyncio.gather(*(handler.call(RECORD) for _ in range(250)))
        await handler.close()
    assert len(service.requests) == 250


async def test_the_largest_record_of_the_defaults_fits_a_default_server() -> None:
    largest = Record("orders", 0, 0, 0, b"key", bytes(2_097_152), (), 1, "id", "shop", None)
    async with serving() as service:
        assert await call(service.address, largest) is None
    assert service.requests[0].value == largest.value
