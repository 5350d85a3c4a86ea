"""A real gRPC service on the test's event loop; the test writes its answers, and it remembers every call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc import aio

from processor.handlers.grpc import GrpcHandler
from tests.support.handler_proto import request
from tests.support.waiting import POLL_S
from wait_registry.handler import Record, TransientError
from waitreg.local.ports import LOOPBACK

Answer = Callable[[Any, aio.ServicerContext], Awaitable[bytes]]


@dataclass(slots=True)
class GrpcService:
    """What a service has seen, and where it is."""

    port: int = 0
    requests: list[Any] = field(default_factory=list)
    metadata: list[dict[str, str | bytes]] = field(default_factory=list)
    remaining_s: list[float | None] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    server: aio.Server | None = None

    @property
    def address(self) -> str:
        """As ``processor.handler``, without TLS."""
        return f"grpc://{LOOPBACK}:{self.port}"

    async def stop(self) -> None:
        """Stop at once; calls that still run are cancelled."""
        assert self.server is not None
        await self.server.stop(None)


async def done(record: Any, context: aio.ServicerContext) -> bytes:
    """Answer that the record is done."""
    return b""


@asynccontextmanager
async def serving(
    answer: Answer = done,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    tls: grpc.ServerCredentials | None = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> AsyncIterator[GrpcService]:
    """Serve until the block ends; calls that still run are then cancelled.

    Args:
        answer: gets the HandleRequest, returns an encoded HandleResponse.
        host: to listen on.
        port: 0 for any free one.
        tls: serves TLS with it when given.
        options: further ones of the server.
    """
    seen = GrpcService()

    async def handle(encoded: bytes, context: aio.ServicerContext) -> bytes:
        record = request(encoded)
        seen.requests.append(record)
        seen.metadata.append(dict(context.invocation_metadata()))
        seen.remaining_s.append(context.time_remaining())
        try:
            return await answer(record, context)
        except asyncio.CancelledError:
            seen.cancelled.set()
            raise

    methods = {"Handle": grpc.unary_unary_rpc_method_handler(handle)}
    server = seen.server = aio.server(options=(("grpc.so_reuseport", 0), *options))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("waitreg_handler.v1.Handler", methods),))
    place = f"{host}:{port}"
    seen.port = server.add_insecure_port(place) if tls is None else server.add_secure_port(place, tls)
    await server.start()
    try:
        yield seen
    finally:
        await seen.stop()


async def call_until(handler: GrpcHandler, record: Record, condition: Callable[[], object]) -> None:
    """Call until the condition holds, for which the caller sets a limit; failures that are retried count as calls."""
    while not condition():
        try:
            await handler.call(record)
        except TransientError:
            await asyncio.sleep(POLL_S)
