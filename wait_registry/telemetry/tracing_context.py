"""W3C Trace Context (https://www.w3.org/TR/trace-context-1/) in Kafka headers and in HTTP headers."""

from __future__ import annotations

import logging
from typing import Final

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wait_registry.records.headers import Headers
from wait_registry.records.system_headers import SystemHeaders

# They write what they can't use as it stands in a header or an attribute, a line a record.
_QUOTING: Final = ("opentelemetry.trace.span", "opentelemetry.attributes")
_W3C: Final = TraceContextTextMapPropagator()


class _RecordHeaders(Getter[SystemHeaders]):
    """Reads a record's headers; what can't be trace context counts as absent, of several the last counts."""

    def get(self, carrier: SystemHeaders, key: str) -> list[str] | None:
        value = carrier.trace(key)
        return None if value is None else [value]

    def keys(self, carrier: SystemHeaders) -> list[str]:
        return list(_W3C.fields)


_READER: Final = _RecordHeaders()


def keep_content_out_of_logs() -> None:
    """Silence OpenTelemetry's loggers that quote a record's headers: any of them may be a secret."""
    for name in _QUOTING:
        logger = logging.getLogger(name)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False


def context_of(headers: Headers) -> Context:
    """Return the context that a record came in; an empty one when it names none, or one that can't be read."""
    return _W3C.extract(SystemHeaders(headers), Context(), _READER)


def http_headers() -> list[tuple[str, str]]:
    """Return the headers that carry the current trace on; none when there is none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return list(carrier.items())
