"""An OTLP/HTTP receiver that keeps what services send, read with OpenTelemetry's own protocol definitions."""

from __future__ import annotations

from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as it came over the network; ids are hexadecimal, ``parent_id`` is empty for a root."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]


class Collector:
    """Listens on loopback until it is closed."""

    def __init__(self) -> None:
        self.received: list[ReceivedSpan] = []
        received = self.received

        class Request(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.extend(_spans(self.path, body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def base(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT takes."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def endpoint(self) -> str:
        """What telemetry.traces_endpoint takes."""
        return f"{self.base}/v1/traces"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


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
