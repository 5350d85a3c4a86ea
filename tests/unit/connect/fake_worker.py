"""A worker of Kafka Connect that gives one answer to every request, and what it answers about connectors."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_service import Answer, Call, HttpService
from wait_registry.settings.loading import load_settings
from waitreg.connect.rest import ConnectRest
from waitreg.connect.state import ConnectorState

TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:652)
Caused by: org.apache.kafka.connect.errors.ConnectException: JDBC sink connector failure
\tat io.debezium.connector.jdbc.JdbcSinkConnectorTask.put(JdbcSinkConnectorTask.java:111)
Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.
\t... 12 more
"""


@contextmanager
def answering(
    status: int, body: bytes, context: ssl.SSLContext | None = None, posted: tuple[int, bytes] | None = None
) -> Iterator[HttpService]:
    """Serve one answer, and to POST another one, if given."""

    def answer(call: Call) -> Answer:
        return Answer(*(posted if posted and call.method == "POST" else (status, body)))

    with HttpService(answer, context) as service:
        yield service


def rest(url: str, **given: str) -> ConnectRest:
    settings = {"connect.url": url, **{f"connect.{name}": value for name, value in given.items()}}
    return ConnectRest(load_settings(settings, env={}).connect)


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
