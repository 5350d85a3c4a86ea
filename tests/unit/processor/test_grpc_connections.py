"""How the gRPC handler keeps, spreads and renews its connections; all servers are real."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from processor.handlers.grpc import GrpcHandler
from tests.support.grpc_service import call_until, serving
from tests.unit.processor.parts import RECORD
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.settings.grpc import GrpcHandlerSettings

LIMIT_S = 60.0
ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def handler_for(address: str, max_in_flight: int = 4) -> GrpcHandler:
    return GrpcHandler(address, GrpcHandlerSettings(), LIMIT_S, max_in_flight)


@asynccontextmanager
async def opened(handler: GrpcHandler) -> AsyncIterator[GrpcHandler]:
    await handler.open()
    try:
        async with asyncio.timeout(LIMIT_S):
            yield handler
    finally:
        await handler.close()


def handler_of_one_name(port: int) -> GrpcHandler:
    """Return the handler of a name, with the addresses that gRPC would find for it."""
    handler = handler_for(f"grpc://orders.test:{port}")
    assert handler.target == f"dns:///orders.test:{port}"
    handler.target = f"ipv4:{','.join(f'{address}:{port}' for address in ADDRESSES)}"
    return handler


async def test_calls_take_turns_among_the_servers_of_one_name() -> None:
    [port] = free_ports(1)
    async with AsyncExitStack() as running:
        servers = [await running.enter_async_context(serving(host=host, port=port)) for host in ADDRESSES]
        handler = handler_of_one_name(port)
        async with opened(handler):
            await call_until(handler, RECORD, lambda: all(server.requests for server in servers))
            before = [len(server.requests) for server in servers]
            for _ in range(30):
                await handler.call(RECORD)
    assert [len(server.requests) - number for server, number in zip(servers, before, strict=True)] == [10, 10, 10]


async def test_the_servers_that_remain_get_all_calls() -> None:
    [port] = free_ports(1)
    async with AsyncExitStack() as running:
        servers = [await running.enter_async_context(serving(host=host, port=port)) for host in ADDRESSES[1:]]
        handler = handler_of_one_name(port)
        async with opened(handler):
            async with serving(host=ADDRESSES[0], port=port) as leaving:
                await call_until(handler, RECORD, lambda: leaving.requests)
            await call_until(handler, RECORD, lambda: all(server.requests for server in servers))
            before = sum(len(server.requests) for server in servers)
            await call_until(handler, RECORD, lambda: sum(len(server.requests) for server in servers) == before + 30)


async def test_a_server_that_is_away_is_tried_about_once_a_second() -> None:
    """By default the eighth connection begins after more than half a minute, and later ones after two more."""
    connections, eight = 0, asyncio.Event()

    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()
        if connections == 8:
            eight.set()

    away = await asyncio.start_server(refuse, LOOPBACK, 0)
    async with away, opened(handler_for(f"grpc://{LOOPBACK}:{away.sockets[0].getsockname()[1]}")) as handler:
        calls = asyncio.create_task(call_until(handler, RECORD, eight.is_set))
        await asyncio.wait_for(eight.wait(), 30)
        await calls


async def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://{LOOPBACK}:{free_ports(1)[0]}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    async with serving() as service, opened(handler_for(service.address)) as handler:
        await handler.call(RECORD)
    assert len(service.requests) == 1


async def test_a_server_that_vanishes_is_noticed_by_its_missing_acknowledgments() -> None:
    """TCP_USER_TIMEOUT is set; the kernel would try for a quarter of an hour without."""
    async with serving() as service, opened(handler_for(service.address)) as handler:
        await handler.call(RECORD)
        (one,) = connections_to(service.port)
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000


def connections_to(port: int) -> list[socket.socket]:
    """Return this process's own connections to a port."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # no socket, not connected, or closed by now
            one = socket.socket(fileno=os.dup(int(descriptor.name)))
            if one.getpeername()[1:2] == (port,):
                found.append(one)
    return found
