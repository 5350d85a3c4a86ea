"""Connectors' states as a worker reports them."""

from __future__ import annotations

from typing import Any

from wait_registry.cli.connect.state import ConnectorState

TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:652)
Caused by: org.apache.kafka.connect.errors.ConnectException: JDBC sink connector failure
\tat io.debezium.connector.jdbc.JdbcSinkConnectorTask.put(JdbcSinkConnectorTask.java:111)
Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.
\t... 12 more
"""


def state(name: str, own: str, *tasks: str, kind: str = "sink", trace: str = TRACE) -> ConnectorState:
    """Return a connector's state, with those of its tasks; what has failed has the stack trace."""

    def part(word: str) -> dict[str, Any]:
        return {"state": word, "worker_id": "w:8083", **({"trace": trace} if word == "FAILED" else {})}

    listed = [{"id": number, **part(word)} for number, word in enumerate(tasks)]
    status = {"name": name, "type": kind, "connector": part(own), "tasks": listed}
    return ConnectorState.of(status, {"config": {"topics": "a"}})
