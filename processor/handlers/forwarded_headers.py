"""Record headers that a call carries as headers or metadata of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from wait_registry.handler import Record
from wait_registry.records.header_names import TRACEPARENT, TRACESTATE
from wait_registry.telemetry.tracing import HttpHeadersSource

# What a value may hold so that every server reads it alike (RFC 9110, section 5.5), and gRPC takes it as metadata.
_SAFE_VALUE: Final = re.compile(rb"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


class ForwardedHeaders:
    """The headers that a call has of its trace and of its record.

    Args:
        names: of the record's headers, in any case.
        trace_headers: gives the headers that carry the trace on, if tracing is on; a record's own are then not sent.
    """

    def __init__(self, names: Iterable[str], trace_headers: HttpHeadersSource | None) -> None:
        wanted = frozenset(name.lower() for name in names)
        self._names = wanted if trace_headers is None else wanted - {TRACEPARENT, TRACESTATE}
        self._trace_headers = trace_headers

    def of(self, record: Record) -> list[tuple[str, str]]:
        """Return them; of the record those whose values are plain ASCII, in order."""
        headers = [] if self._trace_headers is None else list(self._trace_headers())
        if self._names:
            headers += [
                (name, value.decode("ascii"))
                for name, value in record.headers
                if name.lower() in self._names and value is not None and _SAFE_VALUE.fullmatch(value)
            ]
        return headers
