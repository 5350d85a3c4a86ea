"""Send spans in batches, so that an unavailable collector costs the service spans and nothing else.

The SDK's queue is bounded and drops what doesn't fit; its worker thread retries and gives up. The SDK limits neither a
flush nor its own log lines (https://github.com/open-telemetry/opentelemetry-python/issues/4568).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from opentelemetry.sdk.trace.export import BatchSpanProcessor

from wait_registry.logs import RepeatFilter

# They write a line for each failed request, and for each span that the queue drops.
_LOGGERS: Final = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")

REPEAT_S = 300.0
# The SDK's own limits are the exporter's retries, up to 30 s, which is too long for the end of a service.
STOP_LIMIT_S = 5.0
FLUSH_LIMIT_S = 2.0


class SpanSender(BatchSpanProcessor):
    """Sends spans from a thread of its own, and waits for the collector only within limits."""

    _flushing: threading.Thread | None = None

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Send the queue; after the limit it continues in the background, and the next flushes don't wait for it."""
        if self._flushing is None or not self._flushing.is_alive():
            self._flushing = _run_within(FLUSH_LIMIT_S, super().force_flush)
        return not self._flushing.is_alive()

    def shutdown(self) -> None:
        """Send the queue within the limit."""
        _run_within(STOP_LIMIT_S, super().shutdown)


def limit_log_lines() -> None:
    """Let the SDK log each kind of failure once in five minutes."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, RepeatFilter) for one in logger.filters):
            logger.addFilter(RepeatFilter(REPEAT_S))


def _run_within(limit_s: float, work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, name="traces", daemon=True)
    thread.start()
    thread.join(limit_s)
    return thread
