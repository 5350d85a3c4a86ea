"""A worker of Kafka Connect that gives one answer to every request, and what it answers about connectors."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from wait_registry.cli.connect.rest import ConnectRest
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.settings.loading import load_settings

TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:652)
Caused by: org.apache.kafka.connect.errors.ConnectException: JDBC sink connector failure
\tat io.debezium.connector.jdbc.JdbcSinkConnectorTask.put(JdbcSinkConnectorTask.java:111)
Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.
\t... 12 more
"""


class FakeWorker(ThreadingHTTPServer):
    """Gives one answer (to POST another one, if given), and records paths and headers of the requests."""

    answer: tuple[int, bytes]
    posted: tuple[int, bytes] | None
    asked: list[tuple[str, dict[str, str]]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeWorker

    def do_GET(self) -> None:
        self._answer(*self.server.answer)

    def do_POST(self) -> None:
        self._answer(*(self.server.posted or self.server.answer))

    def _answer(self, status: int, body: bytes) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def answering(
    status: int, body: bytes, context: ssl.SSLContext | None = None, posted: tuple[int, bytes] | None = None
) -> Iterator[FakeWorker]:
    server = FakeWorker(("127.0.0.1", 0), _Handler)
    server.answer, server.posted, server.asked = (status, body), posted, []
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def rest(url: str, **given: str) -> ConnectRest:
    settings = {"connect.url": url, **{f"connect.{name}": value for name, value in given.items()}}
    return ConnectRest(load_settings(settings, env={}).connect, patience_s=0)


def refusing(message: str) -> bytes:
    """Return the body of a worker's error."""
    return json.dumps({"error_code": 1, "message": message}).encode()


def listed(name: str, own: str, *tasks: str, kind: str = "sink", trace: str = TRACE) -> dict[str, Any]:
    """Return a worker's answer about a connector and its tasks in these states; what has failed has the trace."""

    def part(word: str) -> dict[str, Any]:
        return {"state": word, "worker_id": "w:8083", **({"trace": trace} if word == "FAILED" else {})}

    numbered = [{"id": number, **part(word)} for number, word in enumerate(tasks)]
    status = {"name": name, "type": kind, "connector": part(own), "tasks": numbered}
    return {"status": status, "info": {"config": {"topics": "a"}}}


def state(name: str, own: str, *tasks: str, kind: str = "sink") -> ConnectorState:
    """Return that state as our client reads it."""
    answer = listed(name, own, *tasks, kind=kind)
    return ConnectorState.of(answer["status"], answer["info"])
