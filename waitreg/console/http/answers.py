"""From a request to an answer: the page is made in a thread, and each failure is a page that says what to do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

import psycopg
from aiohttp import web

from wait_registry.display import safe
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresRefused, PostgresUnavailable
from wait_registry.postgres.errors import server_message
from waitreg.console.access.grants import Person
from waitreg.console.http.forms import SAFE, read_bytes, read_form
from waitreg.console.http.responses import failure, header_of, response
from waitreg.console.page import Acts, Answered, Asked, Download, Fixed, Redirect, View
from waitreg.console.refusals import Busy, NotAllowed, Refusal
from waitreg.console.tables import TablesReader

log = logging.getLogger(__name__)

# Pages that are made at once, each with a connection to Postgres, and those that wait for their turn.
AT_ONCE, WAITING = 8, 32
# Edited records that are read at once.
LARGE: Final = 4
PERSON: Final = web.RequestKey("person", Person)


class Answers:
    """Makes pages, a few at once, so that the console can't take Postgres from the sink."""

    def __init__(self, tables: TablesReader) -> None:
        self._tables = tables
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="page")
        self._taken = 0
        self._large = asyncio.Semaphore(LARGE)

    def handler(
        self, view: View[Acts] | Fixed, actions: Acts, most_bytes: int = 0
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler that answers with the page of a view.

        Args:
            view: makes the page.
            actions: what the console does for it.
            most_bytes: how many bytes it takes; 0 if it takes a form.
        """

        async def handle(request: web.Request) -> web.Response:
            if self._taken >= AT_ONCE + WAITING:
                return response(failure(503, "Too many pages are asked for at once", "Try again in some seconds."))
            person = request[PERSON]
            form = [] if request.method in SAFE or most_bytes else await read_form(request)
            async with self._large:
                content = await read_bytes(request, most_bytes) if most_bytes else b""
            query = list(request.query.items())
            asked = Asked(dict(request.match_info), query, datetime.now(UTC), actions, form, content)
            self._taken += 1
            try:
                loop = asyncio.get_running_loop()
                return response(await loop.run_in_executor(self._pool, self._page, view, asked, person))
            finally:
                self._taken -= 1

        return handle

    def close(self) -> None:
        """End the threads; pages that have not begun are not made."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _page(self, view: View[Acts] | Fixed, asked: Asked[Acts], person: Person) -> Answered:
        if not person.grants:
            return failure(403, "You may not see this", f"No grant of console.grants is to {person.name!r}.", person)
        try:
            return self._made(view, asked, person)
        except (PostgresRefused, PostgresUnavailable) as error:
            log.warning("a page failed: %s", error)
            return failure(503, "Postgres can't answer", "The console's log says why. The services work on without it.")
        except Refusal as error:
            if isinstance(error, NotAllowed):
                log.warning("refused to %s: %s", ascii(person.name), error)
            job = asked.path.get("job", "") if isinstance(error, Busy) else ""
            return failure(error.status, error.title, str(error), job=job)
        except ConfigurationError as error:
            return failure(400, "This can't be answered", str(error), job=asked.path.get("job", ""))
        except TransientError as error:
            log.warning("a page failed: %s", error)
            return failure(503, "Kafka can't answer", str(error))
        except psycopg.DataError as error:
            return failure(400, "This can't be answered", server_message(error))
        except psycopg.errors.QueryCanceled:
            return failure(503, "Postgres took too long", "Ask for less: a shorter time, one group, one topic.")
        except psycopg.Error as error:
            log.warning("a page failed: %s", server_message(error))
            return failure(503, "Postgres can't answer", server_message(error))

    def _made(self, view: View[Acts] | Fixed, asked: Asked[Acts], person: Person) -> Answered:
        if isinstance(view, Fixed):
            page: Answered = view.page()
            age = ""
        else:
            with self._tables.open(person) as tables:
                page, age = view(asked, tables), tables.age
        if isinstance(page, Redirect):
            return page
        if page.contents_of:
            what = "downloaded by" if isinstance(page, Download) else "shown to"
            log.info("contents of %s %s %s", page.contents_of, what, safe(person.name))
        if isinstance(page, Download):
            return page
        about = {"now": asked.now, "age": age, "limits": person.limits(), **header_of(person)}
        return page._replace(values={**page.values, **about})
