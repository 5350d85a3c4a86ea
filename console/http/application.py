"""The console as a web application: its addresses, which hosts it answers for, and the headers of every answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from importlib.resources import files
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from console.http.answers import PERSON, Answers, OpenTables, failure, response
from console.http.identity import Identify, Refused
from console.pages.routes import ROUTES

log = logging.getLogger(__name__)

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
# Nothing is taken from elsewhere, nothing is run that isn't a file of ours, and no other page may frame this one.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "waitreg",
}
# The files that pages take, with their types.
_FILES: Final = {"console.css": "text/css", "icon.svg": "image/svg+xml", "live.js": "text/javascript"}
_MOST_BODY_BYTES: Final = 64 * 1024


def application(open_tables: OpenTables, identify: Identify, hosts: Iterable[str]) -> web.Application:
    """Return the application.

    Args:
        open_tables: connects for one page.
        identify: returns who looks.
        hosts: names without a port that browsers may ask for, besides those of loopback. Others are refused, or a page
            of an attacker could read this one through a name that leads to loopback (DNS rebinding).
    """
    answers = Answers(open_tables)

    async def end(_: web.Application) -> AsyncIterator[None]:
        yield
        answers.close()

    app = web.Application(middlewares=[_guard({*LOOPBACK, *hosts}, identify)], client_max_size=_MOST_BODY_BYTES)
    app.router.add_routes([web.get(route.path, answers.handler(route.view)) for route in ROUTES])
    app.router.add_routes([web.get(f"/static/{name}", _file(name, kind)) for name, kind in _FILES.items()])
    app.cleanup_ctx.append(end)
    return app


def _guard(hosts: set[str], identify: Identify) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await _answer(request, handler, hosts, identify)
        answer.headers.update(_HEADERS)
        return answer

    return guard


async def _answer(request: web.Request, handler: Handler, hosts: set[str], identify: Identify) -> web.StreamResponse:
    if (host := _without_port(request.host)) not in hosts:
        return _nothing(421, f"This console doesn't answer for {host!r}. Add the name to the setting console.hosts.")
    # A link in a chat opens a page, which is wanted; nothing else of another site may ask for one.
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.headers.get("Sec-Fetch-Dest") != "document":
        return _nothing(403, "Another site's page may only link to this console.")
    try:
        request[PERSON] = await identify(request)
        return await handler(request)
    except Refused as refused:
        answer = response(failure(refused.status, "You can't be let in", str(refused)))
        answer.headers.update(refused.headers)
        return answer
    except web.HTTPNotFound:
        return _nothing(404, "There is no such page.")
    except web.HTTPMethodNotAllowed:
        return _nothing(405, "The console only reads: it takes GET and HEAD.")
    except Exception:
        log.exception("a page failed")
        return response(failure(500, "This page failed", "The console's log has the error."))


def _nothing(status: int, sentence: str) -> web.Response:
    return response(failure(status, "This can't be shown", sentence))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _file(name: str, content_type: str) -> Handler:
    text = (files("console") / "static" / name).read_text("utf-8")

    async def give(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return give
