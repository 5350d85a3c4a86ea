"""Requests that change something: only the console's own pages may send them, as small forms, or as bytes."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import hdrs, web

from waitreg.console.refusals import NotAdmitted

SAFE: Final = frozenset((hdrs.METH_GET, hdrs.METH_HEAD))
_MOST_FIELDS: Final = 200
_MOST_BYTES: Final = 64 * 1024
_FORM_S: Final = 10.0
_BYTES_S: Final = 60.0
_BYTES: Final = "application/octet-stream"
_FORM: Final = "application/x-www-form-urlencoded"


def require_own_page(request: web.Request, *, behind_tls: bool) -> None:
    """Refuse what a page of another site could have sent, also to a console on loopback.

    Args:
        request: with a method that isn't in `SAFE`.
        behind_tls: whether browsers reach the console by TLS alone.

    Raises:
        NotAdmitted: neither ``Sec-Fetch-Site`` nor ``Origin`` says that it comes from this console's own page.
    """
    site = request.headers.getall("Sec-Fetch-Site", [])
    if site:
        own = site == ["same-origin"]
    else:
        schemes = ("https",) if behind_tls else ("http", "https")
        own = request.headers.getall(hdrs.ORIGIN, []) in [[f"{scheme}://{request.host}"] for scheme in schemes]
    if not own:
        raise NotAdmitted(
            403, "Only the console's own pages may ask for a change, and this request came from elsewhere."
        )


async def read_form(request: web.Request) -> list[tuple[str, str]]:
    """Return the fields of a form in their order; nothing else is read.

    Raises:
        NotAdmitted: it is no form, has too many fields, is too long or takes too long.
    """
    body = await _read(request, _FORM, _MOST_BYTES, _FORM_S)
    try:
        return parse_qsl(body.decode("ascii"), True, True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise NotAdmitted(400, f"The form can't be read: at most {_MOST_FIELDS} fields, in UTF-8.") from None


async def read_bytes(request: web.Request, most: int) -> bytes:
    """Return the body of a request as it is.

    Args:
        request: with a body.
        most: how many bytes are taken.

    Raises:
        NotAdmitted: it has another type, is too long or takes too long.
    """
    return await _read(request, _BYTES, most, _BYTES_S)


async def _read(request: web.Request, content_type: str, most: int, limit_s: float) -> bytes:
    if request.content_type != content_type:
        raise NotAdmitted(415, f"The type {content_type} is expected.")
    try:
        return await asyncio.wait_for(request.clone(client_max_size=most).read(), limit_s)
    except TimeoutError:
        raise NotAdmitted(408, f"What is sent must arrive within {limit_s:g} s.") from None
    except web.HTTPRequestEntityTooLarge:
        raise NotAdmitted(413, f"What is sent may have at most {most} bytes.") from None
