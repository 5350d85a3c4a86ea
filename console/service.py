"""The console's service: it listens until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from aiohttp import web

from console.access.masks import parse_masks
from console.http.application import application
from console.http.identity import identification
from console.tables import Age, Outcomes, open_tables
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

_STOP_S = 5.0


class ConsoleService:
    """Serves the pages.

    Args:
        settings: the console's own, and where Postgres is.
        age: returns the line with the age of the tables.
        outcomes: returns what became of the records of a job.

    Raises:
        ConfigurationError: a setting can't be used, or would let in more people than it says.
    """

    def __init__(self, settings: Settings, age: Age, outcomes: Outcomes) -> None:
        self._settings = settings
        self._age = age
        self._outcomes = outcomes
        self._masks = parse_masks(settings.console.masks)
        self._identify = identification(settings.console)
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
        tables = partial(open_tables, self._settings, self._age, self._outcomes, self._masks)
        pages = application(tables, self._identify, console.hosts)
        runner = web.AppRunner(pages, access_log=None, shutdown_timeout=_STOP_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, console.host, console.port).start()
            self.port = runner.addresses[0][1]
            log.info("the console is at http://%s:%d/", console.host, self.port)
            await self._stop.wait()
        except OSError as error:
            raise ConfigurationError(
                f"can't listen on {console.host}:{console.port} for the console: {error.strerror or error}. "
                "Set console.port to a free one (0 takes any) or console.host to an address of this host."
            ) from error
        finally:
            await runner.cleanup()
