"""An OTLP/HTTP receiver that keeps what services send, read with OpenTelemetry's own protocol definitions."""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.support.http_service import Answer, Call, HttpService


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as it came over the network; ids are hexadecimal, ``parent_id`` is empty for a root."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]


class Collector(HttpService):
    """A context manager; its address is what OTEL_EXPORTER_OTLP_ENDPOINT takes."""

    def __init__(self) -> None:
        super().__init__(self._keep)
        self.received: list[ReceivedSpan] = []

    @property
    def endpoint(self) -> str:
        """What telemetry.traces_endpoint takes."""
        return f"{self.address}/v1/traces"

    def _keep(self, call: Call) -> Answer:
        self.received += _spans(call.path, call.body)
        return Answer()


def _spans(path: str, body: bytes) -> list[ReceivedSpan]:
    assert path == "/v1/traces", path
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    return [
        ReceivedSpan(
            _texts(resource.resource.attributes)["service.name"],
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            _texts(span.attributes),
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _texts(attributes: list[KeyValue]) -> dict[str, str]:
    return {one.key: one.value.string_value or str(one.value.int_value) for one in attributes}
