"""The theme of the pages: as the system has it, light or dark. A cookie of the browser keeps it, nothing else does."""

from __future__ import annotations

from contextvars import ContextVar
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from waitreg.console.http.forms import read_form
from waitreg.console.page import local_path
from waitreg.console.refusals import NotAdmitted

PATH: Final = "/theme"
_COOKIE: Final = "waitreg-theme"
_KEPT_S: Final = 365 * 86_400


class Theme(StrEnum):
    """The colors of a page."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


# Of the request that is being answered, so that pages are in their theme from the first paint on.
CURRENT: ContextVar[Theme] = ContextVar("theme", default=Theme.SYSTEM)


def choose(request: web.Request) -> None:
    """Have pages that answer a request be in the theme of its cookie."""
    try:
        CURRENT.set(Theme(request.cookies.get(_COOKIE, Theme.SYSTEM)))
    except ValueError:  # not a cookie of ours
        CURRENT.set(Theme.SYSTEM)


def route(*, behind_tls: bool) -> web.RouteDef:
    """Return the address that sets the cookie; it leads back to the page that the form was on.

    Args:
        behind_tls: whether browsers reach the console by TLS alone.
    """

    async def set_theme(request: web.Request) -> web.StreamResponse:
        try:
            theme = Theme(dict(await read_form(request)).get("theme", ""))
        except ValueError:
            raise NotAdmitted(400, f"There is no such theme; there are {', '.join(Theme)}.") from None
        answer = web.Response(status=303, headers={"Location": _back(request)})
        answer.set_cookie(
            _COOKIE, theme.value, max_age=_KEPT_S, path="/", secure=behind_tls, httponly=True, samesite="Lax"
        )
        return answer

    return web.post(PATH, set_theme)


def _back(request: web.Request) -> str:
    """Return the path of the page that a form was on, if it was one of this console."""
    try:
        page = urlsplit(request.headers.get("Referer", ""))
    except ValueError:
        return "/"
    target = f"{page.path}?{page.query}" if page.query else page.path
    return local_path(target) if page.netloc == request.host else "/"
