"""The console's service: it listens until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

from wait_registry.service.http_server import listening
from wait_registry.settings.tree import Settings
from waitreg.console.actions.actions import Actions
from waitreg.console.http.application import application
from waitreg.console.http.identity import identification
from waitreg.console.tables import TablesReader

log = logging.getLogger(__name__)

_STOP_S = 5.0
# The address of a dry run names each dead letter that was ticked.
_MOST_LINE_BYTES = 32_768
# How long a connection may be without a complete request, or idle between two, s. Longer than the minute for which
# proxies keep theirs, so that they don't send a request to a connection that is just being closed.
IDLE_S = 75.0


class ConsoleService:
    """Serves the pages, and runs the jobs that they start.

    Args:
        settings: the console's own, where Postgres is and, if it may act, Kafka.

    Raises:
        ConfigurationError: a setting can't be used, or would let in more people than it says.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tables = TablesReader(settings)
        self._identity = identification(settings.console)
        self._actions = None if settings.console.read_only else Actions(settings)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.port = 0

    def run(self) -> None:
        """Serve until stopped.

        Raises:
            ConfigurationError: the address can't be listened on.
        """
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    def request_stop(self) -> None:
        """Ask ``run`` to end soon."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self) -> None:
        console = self._settings.console
        runner = web.AppRunner(
            application(self._tables, self._identity, console, self._actions),
            access_log=None,
            shutdown_timeout=_STOP_S,
            keepalive_timeout=IDLE_S,
            max_line_size=_MOST_LINE_BYTES,
        )
        fix = "Set console.port to a free one (0 takes any) or console.host to an address of this host."
        try:
            async with listening(runner, console.host, console.port, "the console", fix) as self.port:
                log.info("the console is at http://%s:%d/", console.host, self.port)
                await self._stop.wait()
        finally:
            if self._actions is not None:
                await asyncio.to_thread(self._actions.close)
