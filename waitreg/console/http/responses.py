"""The answer of HTTP that shows a page, or gives a value as a file."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from waitreg.console.access.grants import Person
from waitreg.console.http.rendering import render
from waitreg.console.page import Answered, Download, Page, Redirect

_AGAIN_S: Final = "5"


def response(page: Answered) -> web.Response:
    """Return the answer that shows a page."""
    if isinstance(page, Redirect):
        return web.Response(status=303, headers={"Location": page.location})
    if isinstance(page, Download):
        headers = {"Content-Disposition": 'attachment; filename="value.bin"'}
        return web.Response(body=page.content, content_type="application/octet-stream", headers=headers)
    headers = {"Retry-After": _AGAIN_S} if page.status == 503 else {}
    return web.Response(text=render(page), status=page.status, content_type="text/html", headers=headers)


def failure(status: int, title: str, sentence: str, person: Person | None = None, job: str = "") -> Page:
    """Return a page that says why there is no other.

    Args:
        status: of HTTP.
        title: of the page.
        sentence: what happened, and what to do.
        person: to be shown, and to be let log out.
        job: whose page is linked.
    """
    about = {"age": "", "limits": "", "job": job, **header_of(person)}
    return Page("failure.html", {"title": title, "sentence": sentence, **about}, status)


def header_of(person: Person | None) -> dict[str, object]:
    """Return what the head of a page says of the person who looks at it."""
    if person is None:
        return {"person": "", "has_session": False}
    return {"person": person.name, "has_session": person.has_session}
