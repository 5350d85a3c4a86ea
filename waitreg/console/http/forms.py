"""Requests that change something: only the console's own pages may send them, as small forms, or as bytes."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import hdrs, web

from waitreg.console.refusals import NotAdmitted

SAFE: Final = frozenset((hdrs.METH_GET, hdrs.METH_HEAD))
_MOST_FIELDS: Final = 200
_BODY_S: Final = 10.0
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
        NotAdmitted: it is no form, has too many fields or takes too long.
        web.HTTPRequestEntityTooLarge: it is too long.
    """
    if request.content_type != _FORM:
        raise NotAdmitted(415, f"A form is expected, {_FORM}.")
    try:
        body = await asyncio.wait_for(request.read(), _BODY_S)
        return parse_qsl(body.decode("ascii"), True, True, max_num_fields=_MOST_FIELDS, errors="strict")
    except TimeoutError:
        raise NotAdmitted(408, "The form took too long.") from None
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
    if request.content_type != _BYTES:
        raise NotAdmitted(415, f"Bytes are expected, {_BYTES}.")
    body = bytearray()
    try:
        async with asyncio.timeout(_BYTES_S):
            async for part in request.content.iter_any():
                body += part
                if len(body) > most:
                    raise NotAdmitted(413, f"An edited record has at most {most} bytes.")
    except TimeoutError:
        raise NotAdmitted(408, "The record took too long.") from None
    return bytes(body)
