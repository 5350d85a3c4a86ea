"""The gRPC handler and a service on Node, which has another implementation of gRPC and Protobuf."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from processor.handlers.grpc import GrpcHandler
from tests.support.handler_proto import PROTO, PROTO_ROOT, retry_info, status_with
from tests.support.node_packages import NodeProgram
from tests.support.waiting import wait_until
from wait_registry.errors import PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.grpc import RETRY_STATUSES, GrpcHandlerSettings, GrpcStatus
from waitreg.local.ports import LOOPBACK


class NodeService(NodeProgram):
    """One that runs on a port, 0 for any free one; ``environment`` has the variables of TLS, see server.js."""

    def __init__(self, folder: Path, port: int = 0, environment: Mapping[str, str] | None = None) -> None:
        proto = {"PORT": str(port), "PROTO": PROTO, "PROTO_ROOT": str(PROTO_ROOT)}
        super().__init__("grpc_node", folder, {**proto, **(environment or {})})

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls so far."""
        return self.events("topic")


LIMIT_S = 60.0
HEADERS = (("a", b"\x00\xff"), ("a", b""), ("n", None), ("é", b"1"))


def record_of(value: bytes | None, offset: int = 42, key: bytes | None = None) -> Record:
    return Record("orders", 3, offset, -1, key, value, HEADERS, 2, "the-wait-id", "shop", None, "the-key", "none")


def asking(**wanted: object) -> Record:
    """Return a record whose value tells the service what to answer."""
    return record_of(json.dumps(wanted).encode())


@asynccontextmanager
async def handler_for(service: NodeService, timeout_s: float = LIMIT_S, **settings: Any) -> AsyncIterator[GrpcHandler]:
    handler = GrpcHandler(f"grpc://{LOOPBACK}:{service.port}", GrpcHandlerSettings(**settings), timeout_s, 4)
    await handler.open()
    try:
        yield handler
    finally:
        await handler.close()


async def call(service: NodeService, record: Record, timeout_s: float = LIMIT_S, **settings: Any) -> HandlerResult:
    async with handler_for(service, timeout_s, **settings) as handler:
        return await asyncio.wait_for(handler.call(record), 4 * LIMIT_S)


@pytest.mark.guarantee("P5.1", "P5.2")
@pytest.mark.parametrize("content", [None, b"", b"\x00\xff"], ids=["null", "empty", "bytes"])
async def test_it_reads_the_record_byte_for_byte(tmp_path: Path, content: bytes | None) -> None:
    with NodeService(tmp_path) as service:
        # gRPC rounds a timeout of a minute up to tenths of a second (timeout_encoding.cc).
        assert await call(service, record_of(content, 2**53 + 1, content), LIMIT_S - 1) is None
    [seen] = service.calls
    assert (seen["topic"], seen["partition"], seen["offset"]) == ("orders", 3, str(2**53 + 1))
    shown = None if content is None else content.hex()
    assert (seen["key"], seen["value"], seen["timestampMs"]) == (shown, shown, "-1")
    assert [(name, value) for name, value in seen["headers"]] == [("a", "00ff"), ("a", ""), ("n", None), ("é", "31")]
    assert (seen["waitId"], seen["idempotencyKey"], seen["group"]) == ("the-wait-id", "the-key", "shop")
    assert (seen["delivery"], seen["attempt"]) == (2, 1)
    assert seen["metadata"]["idempotency-key"] == "the-key"
    assert 0 < seen["remaining"] <= 1000 * LIMIT_S


async def test_its_discard_and_each_of_its_statuses_decide(tmp_path: Path) -> None:
    found: dict[str, object] = {}
    with NodeService(tmp_path) as service:
        async with handler_for(service) as handler:
            assert await handler.call(asking(discard="deleted")) == Discard("deleted")
            for status in GrpcStatus:
                with pytest.raises((TransientError, PermanentError, TimeoutError)) as caught:
                    await handler.call(asking(status=StatusCode[status].value[0]))
                assert f"ended with {status}" in str(caught.value)
                found[status] = type(caught.value)
    retried = dict.fromkeys(RETRY_STATUSES, TransientError)
    expected = {**dict.fromkeys(GrpcStatus, PermanentError), **retried, GrpcStatus.DEADLINE_EXCEEDED: TimeoutError}
    assert found == expected


async def test_its_retry_info_asks_for_a_pause(tmp_path: Path) -> None:
    details = status_with(retry_info(2, 250_000_000)).hex()
    with NodeService(tmp_path) as service:
        with pytest.raises(TransientError) as caught:
            await call(service, asking(status=8, details=details))
    assert caught.value.retry_after_s == 2.25


async def test_the_deadline_and_a_cancelled_attempt_cancel_its_call(tmp_path: Path) -> None:
    with NodeService(tmp_path) as service:
        with pytest.raises(TimeoutError):
            await call(service, asking(never=True), timeout_s=0.5)
        await asyncio.to_thread(wait_until, lambda: service.events("cancelled"), what="the deadline")
        attempt = asyncio.create_task(call(service, asking(never=True), timeout_s=10 * LIMIT_S))
        await asyncio.to_thread(wait_until, lambda: len(service.calls) == 2, what="the second call")
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        await asyncio.to_thread(wait_until, lambda: len(service.events("cancelled")) == 2, what="the cancellation")
