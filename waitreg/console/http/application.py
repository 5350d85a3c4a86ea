"""The console as a web application: its addresses, which hosts it answers for, and the headers of every answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from wait_registry.settings.console import ConsoleSettings
from waitreg.console.actions.actions import Actions
from waitreg.console.http import theme
from waitreg.console.http.answers import PERSON, Answers
from waitreg.console.http.forms import SAFE, require_own_page
from waitreg.console.http.identity import Identify, Identity
from waitreg.console.http.responses import failure, response
from waitreg.console.pages.routes import ACTING, EDITING, ROUTES
from waitreg.console.refusals import NotAdmitted
from waitreg.console.tables import TablesReader

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
    # Not "no-referrer", with which browsers send forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "waitreg",
}
# For probes, which ask by address and give no password.
_HEALTH: Final = "/health/ready"
# The files that pages take, also those of people who aren't known yet.
_STATIC: Final = "/static"


def application(
    tables: TablesReader, identity: Identity, console: ConsoleSettings, actions: Actions | None
) -> web.Application:
    """Return the application.

    Args:
        tables: are read by pages.
        identity: how it is known who looks.
        console: its ``hosts`` are names without a port that browsers may ask for, besides those of loopback. Others are
            refused, or a page of an attacker could read this one through a name that leads to loopback (DNS rebinding).
        actions: what the console does; without them, nothing that acts has an address.
    """
    answers = Answers(tables)

    async def end(_: web.Application) -> AsyncIterator[None]:
        yield
        answers.close()

    app = web.Application(middlewares=[_guard(console, identity)])
    router = app.router
    add = {"GET": router.add_get, "POST": router.add_post, "PUT": router.add_put}
    for route in ROUTES:
        add[route.method](route.path, answers.handler(route.view, actions))
    if actions is not None:
        for acting in (*ACTING, *EDITING) if actions.edits else ACTING:
            most_bytes = actions.most_edit_bytes if acting.method == "PUT" else 0
            add[acting.method](acting.path, answers.handler(acting.view, actions, most_bytes))
    router.add_routes([*identity.routes, theme.route(behind_tls=console.behind_tls)])
    router.add_static(_STATIC, str(files("waitreg.console") / "static"))
    app.cleanup_ctx.append(end)
    return app


def _guard(console: ConsoleSettings, identity: Identity) -> Middleware:
    logins = {route.handler for route in identity.routes}

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        theme.choose(request)
        is_open = request.path.startswith(f"{_STATIC}/") or request.match_info.handler in logins
        answer = await _answer(request, handler, console, None if is_open else identity.identify)
        answer.headers.update(_HEADERS)
        if identity.answered is not None:
            identity.answered(request, answer)
        return answer

    return guard


async def _answer(
    request: web.Request, handler: Handler, console: ConsoleSettings, identify: Identify | None
) -> web.StreamResponse:
    if request.path == _HEALTH:
        return web.Response(text="ok\n")
    if (host := _without_port(request.host)) not in (*LOOPBACK, *console.hosts):
        return _nothing(421, f"This console doesn't answer for {host!r}. Add the name to the setting console.hosts.")
    # A link in a chat opens a page, which is wanted; nothing else of another site may ask for one.
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.headers.get("Sec-Fetch-Dest") != "document":
        return _nothing(403, "Another site's page may only link to this console.")
    try:
        if request.method not in SAFE and request.match_info.http_exception is None:
            require_own_page(request, behind_tls=console.behind_tls)
        if identify is not None:
            request[PERSON] = (await identify(request))._replace(bulk_above=console.bulk_above)
        return await handler(request)
    except NotAdmitted as refused:
        if request.method not in SAFE:
            log.warning("refused a change from %s: %s", request.remote, refused)
        answer = response(failure(refused.status, refused.title, str(refused)))
        answer.headers.update(refused.headers)
        return answer
    except (web.HTTPNotFound, web.HTTPForbidden):  # the latter for a folder of files
        return _nothing(404, "There is no such page.")
    except web.HTTPMethodNotAllowed as error:
        return _nothing(405, f"This address takes {', '.join(sorted(error.allowed_methods))}.")
    except Exception:
        log.exception("a page failed")
        return response(failure(500, "This page failed", "The console's log has the error."))


def _nothing(status: int, sentence: str) -> web.Response:
    return response(failure(status, "This can't be shown", sentence))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
