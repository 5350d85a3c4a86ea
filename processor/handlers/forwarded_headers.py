"""Record headers that a call carries as headers or metadata of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from wait_registry.records.header_names import TRACEPARENT, TRACESTATE
from wait_registry.records.headers import Headers

# What a value may hold so that every server reads it alike (RFC 9110, section 5.5), and gRPC takes it as metadata.
_SAFE_VALUE: Final = re.compile(rb"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def forwarded_names(names: Iterable[str], *, traced: bool) -> frozenset[str]:
    """Return the names to forward, in small letters; if tracing is on, the call carries the attempt's own trace."""
    wanted = frozenset(name.lower() for name in names)
    return wanted - {TRACEPARENT, TRACESTATE} if traced else wanted


def forwarded(headers: Headers, names: frozenset[str]) -> list[tuple[str, str]]:
    """Return the headers of these names whose values are plain ASCII, in order; the others stay here."""
    return [
        (name, value.decode("ascii"))
        for name, value in headers
        if name.lower() in names and value is not None and _SAFE_VALUE.fullmatch(value)
    ]
