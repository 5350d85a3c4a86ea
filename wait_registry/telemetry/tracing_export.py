"""Sending spans, so that a collector that doesn't answer costs the service spans and nothing else.

The SDK's queue is bounded and drops what doesn't fit, its worker thread retries and gives up. What is left to do here
is to say so once, instead of a line for every try, and how many were lost in the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = logging.getLogger(__name__)

# Which of the SDK's loggers write a line for every failed try, and for every span that the queue has no room for.
_TRYING: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_QUEUING: Final = "opentelemetry.sdk._shared_internal"

REPEAT_S = 300.0


class LossNotice(logging.Handler):
    """Says that spans are lost, and why, when that begins and every five minutes; takes the SDK's own lines.

    Args:
        monotonic: the clock, s.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said_s: float | None = None
        self._last_try = ""
        for name in (_TRYING, _QUEUING):
            logger = logging.getLogger(name)
            logger.handlers = [self]
            logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line of the SDK."""
        if record.name == _TRYING:
            self._last_try = record.getMessage()
        elif record.levelno >= logging.WARNING:
            self.lost(record.getMessage())

    def lost(self, reason: str = "") -> None:
        """Say that spans are lost, unless that was said a while ago."""
        now_s = self._monotonic()
        if self._said_s is not None and now_s - self._said_s < REPEAT_S:
            return
        self._said_s = now_s
        seen = " ".join(filter(None, (reason, self._last_try))) or "the exporter gave no reason"
        log.warning(
            "spans are lost, records are processed as before: %s. Expected an OTLP/HTTP receiver that keeps up: see "
            "telemetry.traces_endpoint, OTEL_EXPORTER_OTLP_*, OTEL_BSP_*, OTEL_TRACES_SAMPLER",
            seen.rstrip("."),
        )


class WatchedExporter(SpanExporter):
    """Counts what another exporter sends; used by the SDK's worker thread alone.

    Args:
        exporter: does the sending.
        notice: told when it fails.
    """

    def __init__(self, exporter: SpanExporter, notice: LossNotice) -> None:
        self._exporter = exporter
        self._notice = notice
        self.exported = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; one that fails is lost."""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs spans and nothing else
            self._notice.lost(f"{type(error).__name__}: {error}")
            return SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self.exported += len(spans)
        else:
            self._notice.lost()
        return result

    def shutdown(self) -> None:
        """Let go of the connection."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return self._exporter.force_flush(timeout_millis)


class CountedSpans(SpanProcessor):
    """Counts the spans that are offered for sending."""

    def __init__(self) -> None:
        self.offered = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing."""

    def on_end(self, span: ReadableSpan) -> None:
        """Count a span that is sampled."""
        if span.context.trace_flags.sampled:
            self.offered += 1
