"""The HTTP handler: which statuses are retried, and which headers a request has besides its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings import Section

# What every request has already, and what describes its connection or its body (RFC 9110, sections 7.6.1 and 8.6).
_OWN: Final = frozenset(
    {
        *("accept", "connection", "content-length", "content-type", "expect", "host", "idempotency-key", "keep-alive"),
        *("proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
    }
)
_OWN_PREFIX: Final = "x-waitreg-"
# One line of plain text (RFC 9110, section 5.5): a line break would end the head of the request.
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
# RFC 9110, section 5.6.2.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")


class HttpHandlerSettings(Section):
    """The HTTP handler (``processor.handler = "http://..."``): one POST per record."""

    forward_headers: tuple[str, ...] = ()
    """record headers forwarded as HTTP headers"""
    retry_statuses: tuple[int, ...] = (408, 425, 429, 500, 502, 503, 504)
    """statuses that are retried"""
    discard_statuses: tuple[int, ...] = ()
    """statuses that discard the record"""
    content_type: str = "application/octet-stream"
    """Content-Type of the request"""


def http_problems(settings: HttpHandlerSettings) -> Iterator[Diagnosis]:
    """Yield what is wrong with ``processor.http``."""
    if _VALUE.fullmatch(settings.content_type) is None:
        yield error(
            f"processor.http.content_type is {settings.content_type!r}, which isn't one line of plain ASCII text. "
            "Remove line breaks and spaces around it"
        )
    for name in settings.forward_headers:
        lower = name.lower()
        if lower in _OWN or lower.startswith(_OWN_PREFIX):
            yield error(
                f"processor.http.forward_headers has {name!r}. The handler sets this header itself, or it describes "
                "the connection. Remove it, or have the producer write the value under another name"
            )
        elif _TOKEN.fullmatch(lower) is None:
            yield error(
                f"processor.http.forward_headers has {name!r}, which can't be the name of an HTTP header: letters, "
                "digits and !#$%&'*+-.^_`|~ are allowed. Remove it"
            )
