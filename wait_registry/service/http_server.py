"""Runs an aiohttp server on a port, for metrics and health, the console and the downstream of load tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from wait_registry.errors import ConfigurationError

# Of asyncio.
BACKLOG = 128


@asynccontextmanager
async def listening(
    runner: web.BaseRunner, host: str, port: int, purpose: str, fix: str, backlog: int = BACKLOG
) -> AsyncIterator[int]:
    """Serve while the block runs; its end closes the connections.

    Args:
        runner: of the application or server; it isn't set up yet.
        host, port: where to listen; port 0 takes a free one.
        purpose: what the port is for, as it reads after "can't listen ... for".
        fix: what to set if it can't be listened on.
        backlog: clients that may wait for their connection.

    Yields:
        The port that is listened on.

    Raises:
        ConfigurationError: the port is taken, or the address isn't one of this host.
    """
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port, backlog=backlog).start()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigurationError(f"can't listen on {host}:{port} for {purpose}: {reason}. {fix}") from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
