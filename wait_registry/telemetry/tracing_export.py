"""Sending spans in batches, so that an unavailable collector costs the service spans and nothing else.

The SDK's queue is bounded and drops what doesn't fit; its worker thread retries and gives up. This module limits how
long a flush and a shutdown may take, and replaces the SDK's line per failure by one warning and a final count.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

log = logging.getLogger(__name__)

# These loggers of the SDK write a line for every failed request, and for every span that the queue drops.
_EXPORTER_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_QUEUE_LOGGER: Final = "opentelemetry.sdk._shared_internal"

REPEAT_S = 300.0
# The SDK's own limits are the exporter's retries, up to 30 s, which is too long for the end of a service.
STOP_LIMIT_S = 5.0
# The first limit is for a collector that answers, the second for one that was too slow at the last flush.
FLUSH_LIMIT_S = 2.0
SLOW_FLUSH_LIMIT_S = 0.2


class LossReport(logging.Handler):
    """Logs that spans are lost, and why: the first time and every five minutes. Receives the SDK's own lines."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._reported_s: float | None = None
        self._last_failure = ""
        for name in (_EXPORTER_LOGGER, _QUEUE_LOGGER):
            logger = logging.getLogger(name)
            logger.handlers = [self]
            logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _EXPORTER_LOGGER:
            self._last_failure = record.getMessage()
        elif record.levelno >= logging.WARNING:
            self.lost(record.getMessage())

    def lost(self, reason: str = "") -> None:
        now_s = self._monotonic()
        if self._reported_s is not None and now_s - self._reported_s < REPEAT_S:
            return
        self._reported_s = now_s
        seen = " ".join(filter(None, (reason, self._last_failure))) or "the exporter gave no reason"
        log.warning(
            "spans are lost, records are processed as before: %s. Expected an OTLP/HTTP receiver that keeps up: see "
            "telemetry.traces_endpoint, OTEL_EXPORTER_OTLP_*, OTEL_BSP_*, OTEL_TRACES_SAMPLER",
            seen.rstrip("."),
        )


class _CountingExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter, report: LossReport) -> None:
        self._exporter = exporter
        self._report = report
        self.exported = 0
        self.shutdown = exporter.shutdown  # type: ignore[method-assign]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - any failure costs spans and nothing else
            self._report.lost(f"{type(error).__name__}: {error}")
            return SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self.exported += len(spans)
        else:
            self._report.lost()
        return result


class SpanSender(BatchSpanProcessor):
    """Sends spans from a thread of its own, counts them, and ends within a limit.

    Args:
        exporter: sends a batch.
        stop_limit_s: longest shutdown, s.
        monotonic: the clock, s.
        sizes: of the queue and the batches; the OTEL_BSP_* variables by default.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        stop_limit_s: float = STOP_LIMIT_S,
        monotonic: Callable[[], float] = time.monotonic,
        **sizes: int,
    ) -> None:
        self._counting = _CountingExporter(exporter, LossReport(monotonic))
        super().__init__(self._counting, **sizes)  # type: ignore[arg-type]
        self.offered = self._flushed = 0
        self._flushing: threading.Thread | None = None
        self._flush_limit_s = FLUSH_LIMIT_S
        self._stop_limit_s = stop_limit_s

    @property
    def exported(self) -> int:
        return self._counting.exported

    def on_end(self, span: ReadableSpan) -> None:
        if span.context.trace_flags.sampled:
            self.offered += 1
        super().on_end(span)

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Send the queue; after the limit it continues in the background."""
        offered, running = self.offered, self._flushing
        if offered == self._flushed:
            return True
        if running is None or not running.is_alive():
            self._flushed = offered
            running = threading.Thread(target=super().force_flush, name="traces-flush", daemon=True)
            running.start()
        running.join(self._flush_limit_s)
        self._flushing = running
        self._flush_limit_s = SLOW_FLUSH_LIMIT_S if running.is_alive() else FLUSH_LIMIT_S
        return not running.is_alive()

    def shutdown(self) -> None:
        """Send the queue within the limit, and log how many spans were lost since the start."""
        ending = threading.Thread(target=super().shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(self._stop_limit_s)
        if lost := self.offered - self.exported:
            log.warning("%d of %d spans could not be sent", lost, self.offered)
