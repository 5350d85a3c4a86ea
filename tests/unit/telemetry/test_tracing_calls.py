"""The HTTP and the gRPC handler carry the trace on to the service that they call."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from processor.handlers.grpc import GrpcHandler
from processor.handlers.http import HttpHandler
from processor.handlers.open_handler import OpenHandler
from tests.support.grpc_service import serving
from tests.support.http_service import Answer, HttpService
from tests.support.traces import Traced, id_of, traceparent
from wait_registry.handler import Record
from wait_registry.records.original import Original
from wait_registry.settings.grpc import GrpcHandlerSettings
from wait_registry.settings.processor import HttpHandlerSettings
from wait_registry.telemetry.tracing import RecordTaken

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
HEADERS = (traceparent(TRACE, 1), ("tracestate", b"vendor=1"), ("tenant", b"acme"))
RECORD = Record("orders", 3, 42, 2, b"key", b"body", HEADERS, 1, "id", "shop", datetime(2030, 1, 1, tzinfo=UTC))
TAKEN = RecordTaken(
    "orders", 3, 42, Original("orders", 3, 42, 2, "create", b"key", b"body", HEADERS), "shop", "host", "id", 1, 2
)


async def attempt_with(traced: Traced, handler: OpenHandler) -> None:
    """Call a handler as a worker does."""
    await handler.open()
    try:
        record = traced.tracer.record_taken(TAKEN)
        record.attempt_started(1)
        await handler.call(RECORD)
        record.attempt_ended(None)
        record.leave()
    finally:
        await handler.close()


def test_the_http_request_is_a_child_of_the_attempt(traced: Traced) -> None:
    async def call(url: str) -> None:
        settings = HttpHandlerSettings(forward_headers=("traceparent", "tracestate", "tenant"))
        await attempt_with(traced, HttpHandler(url, settings, 1, trace_headers=traced.tracer.http_headers))

    with HttpService(lambda _: Answer()) as service:
        asyncio.run(asyncio.wait_for(call(service.address), 60))
    (received,) = service.calls
    [attempt] = traced.spans("attempt")
    sent = {name.lower(): value for name, value in received.headers.items()}
    assert {name: sent[name] for name in ("tenant", "traceparent", "tracestate")} == {
        "tenant": "acme",
        "traceparent": f"00-{TRACE:032x}-{id_of(attempt):016x}-01",
        "tracestate": "vendor=1",
    }


async def test_the_grpc_call_is_a_child_of_the_attempt(traced: Traced) -> None:
    async with serving() as service:
        settings = GrpcHandlerSettings()
        await attempt_with(traced, GrpcHandler(service.address, settings, 60.0, 1, traced.tracer.http_headers))
    [attempt], [metadata] = traced.spans("attempt"), service.metadata
    assert {name: metadata[name] for name in ("traceparent", "tracestate")} == {
        "traceparent": f"00-{TRACE:032x}-{id_of(attempt):016x}-01",
        "tracestate": "vendor=1",
    }
