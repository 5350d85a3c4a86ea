"""The OpenTelemetry SDK put together: who we are, what is sampled, where spans go, and an end that doesn't hang."""

from __future__ import annotations

import logging
import threading
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter

from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing_export import CountedSpans, LossNotice, WatchedExporter
from wait_registry.telemetry.tracing_ids import ChosenIds

log = logging.getLogger(__name__)

# The release of the semantic conventions that names and attributes follow (messaging: status Development).
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
STOP_LIMIT_S = 5.0
# The first for a receiver that answers; the second once it has been too slow, until it is in time again.
FLUSH_LIMIT_S = 2.0
IMPATIENT_S = 0.2
UNNAMED: Final = "unknown_service"


class Tracing:
    """A provider of tracers, its ids, and its orderly end.

    The sampler is the SDK's default: it follows the parent, and OTEL_TRACES_SAMPLER says what becomes of a trace that
    starts here. Queue and batches are as OTEL_BSP_* say.
    """

    def __init__(self, provider: TracerProvider, ids: ChosenIds, sent: WatchedExporter | None = None) -> None:
        self.ids = ids
        self.tracer = provider.get_tracer("wait_registry", schema_url=SCHEMA_URL)
        self._provider = provider
        self._sent = sent
        self._counted = CountedSpans()
        self._flushing: threading.Thread | None = None
        self._flushed = 0
        self._flush_limit_s = FLUSH_LIMIT_S
        provider.add_span_processor(self._counted)

    @classmethod
    def to_collector(cls, settings: TelemetrySettings, service: str) -> Tracing:
        """Send spans in batches, from a thread of their own, to an OTLP/HTTP receiver.

        A user's own spans take the same way, unless the process has a provider already.

        Args:
            settings: address and name; an empty one leaves it to the OTEL_* variables.
            service: ``processor`` or ``sweeper``.

        Raises:
            Exception: of whatever kind, by the SDK, which refuses an OTEL_* variable.
        """
        ids = ChosenIds()
        exporter = WatchedExporter(OTLPSpanExporter(settings.traces_endpoint or None), LossNotice())
        provider = TracerProvider(resource=_resource(settings, service), id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            trace.set_tracer_provider(provider)
        return cls(provider, ids, exporter)

    @classmethod
    def to_exporter(cls, exporter: SpanExporter, service: str) -> Tracing:
        """Hand each span to an exporter as it ends, and leave the process's own provider alone."""
        ids = ChosenIds()
        provider = TracerProvider(
            resource=_resource(TelemetrySettings(), service), id_generator=ids, shutdown_on_exit=False
        )
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return cls(provider, ids)

    @property
    def offered(self) -> int:
        """Spans that have ended and were to be sent."""
        return self._counted.offered

    def flush(self) -> None:
        """Send what is queued; what takes longer than a receiver is waited for goes on in the background."""
        offered, running = self._counted.offered, self._flushing
        if offered == self._flushed:
            return
        if running is None or not running.is_alive():
            self._flushed = offered
            running = threading.Thread(target=self._provider.force_flush, name="traces-flush", daemon=True)
            running.start()
        running.join(self._flush_limit_s)
        self._flushing = running
        self._flush_limit_s = IMPATIENT_S if running.is_alive() else FLUSH_LIMIT_S

    def stop(self, limit_s: float = STOP_LIMIT_S) -> None:
        """Send what is queued, for no longer than the limit (s), and say how much was lost since the start."""
        # The SDK's own limits are the exporter's retries, up to 30 s: too long for the end of a service.
        ending = threading.Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(limit_s)
        if self._sent is None:
            return
        lost = self._counted.offered - self._sent.exported
        if lost > 0:
            log.warning("%d of %d spans could not be sent", lost, self._counted.offered)


def _resource(settings: TelemetrySettings, service: str) -> Resource:
    if settings.traces_service_name:
        return Resource.create({SERVICE_NAME: settings.traces_service_name})
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, UNNAMED)).startswith(UNNAMED):
        return resource.merge(Resource({SERVICE_NAME: f"waitreg-{service}"}))
    return resource
