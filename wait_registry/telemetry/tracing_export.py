"""Send spans in batches, so that an unavailable collector costs the service spans and nothing else.

The SDK's queue is bounded and drops what doesn't fit; its worker thread retries and gives up. The SDK limits neither a
flush nor its own log lines (https://github.com/open-telemetry/opentelemetry-python/issues/4568).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from wait_registry.repeats import REMINDER_S, RepeatFilter
from wait_registry.settings.runtime import TelemetrySettings

# Returns the IDs of the trace and of the span that are to be used next, None for random ones.
ChosenIds: TypeAlias = Callable[[], tuple[int | None, int | None]]

# They write a line for each failed request, and for each span that the queue drops.
_LOGGERS: Final = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")

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


class _Ids(RandomIdGenerator):
    def __init__(self, chosen: ChosenIds) -> None:
        self._chosen = chosen

    def generate_trace_id(self) -> int:
        return self._chosen()[0] or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self._chosen()[1] or super().generate_span_id()


def provider_of(processor: SpanProcessor, chosen_ids: ChosenIds, resource: Resource | None = None) -> TracerProvider:
    """Return a provider whose spans this processor receives."""
    provider = TracerProvider(resource=resource, id_generator=_Ids(chosen_ids), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def collector_provider(settings: TelemetrySettings, service: str, chosen_ids: ChosenIds) -> TracerProvider:
    """Send spans to an OTLP/HTTP receiver; the user's own spans too, unless the process has a provider."""
    limit_log_lines()
    sender = SpanSender(OTLPSpanExporter(settings.traces_endpoint or None))
    provider = provider_of(sender, chosen_ids, _resource(service))
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return provider


def limit_log_lines() -> None:
    """Let the SDK log each kind of failure once in five minutes."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, RepeatFilter) for one in logger.filters):
            logger.addFilter(RepeatFilter(REMINDER_S))


def _run_within(limit_s: float, work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, name="traces", daemon=True)
    thread.start()
    thread.join(limit_s)
    return thread


def _resource(service: str) -> Resource:
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: f"waitreg-{service}"}))
    return resource
