"""A telemetry port may be used by the service that is checked; another program on it is an error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

import pytest

from wait_registry.cli.checks.telemetry_port import telemetry_port
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry, Reading
from wait_registry.telemetry.health import Health
from wait_registry.telemetry.metrics import PROCESSOR_INFO, READY
from wait_registry.telemetry.server import TelemetryServer

ALL: Sequence[Service] = ("processor", "sink", "sweeper")


def say(port: int, services: Sequence[Service] = ALL) -> Diagnosis:
    settings = Settings.model_validate(
        {"telemetry": {"host": "127.0.0.1", "port": port}, "processor": {"group": "shop"}}
    )
    [line] = telemetry_port(services, settings)
    return line


def running(service: str, *, ready: bool = True, group: str = "") -> TelemetryServer:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [Reading(READY, ready, (service,))])
    if group:
        registry.collect_from(lambda: [Reading(PROCESSOR_INFO, 1, (group, "registry", "host-1"))])
    return TelemetryServer("127.0.0.1", 0, registry, lambda: Health(True), lambda: Health(ready))


def test_a_free_port_is_ok_and_remains_free() -> None:
    with running("sink") as server:
        port = server.port
    assert say(port).message == f"127.0.0.1:{port} is free"
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    ("ready", "group", "asked", "severity", "said"),
    [
        (True, "", ALL, Severity.OK, "in use by a running processor, ready"),
        (False, "", ("processor",), Severity.OK, "in use by a running processor, not ready"),
        (True, "shop", ALL, Severity.OK, "in use by a running processor of the group shop, ready"),
        (True, "billing", ALL, Severity.WARNING, "taken by a running processor of the group billing"),
        (True, "shop", ("sink", "sweeper"), Severity.WARNING, "taken by a running processor of the group shop"),
    ],
)
def test_only_the_checked_service_may_use_the_port(
    ready: bool, group: str, asked: Sequence[Service], severity: Severity, said: str
) -> None:
    with running("processor", ready=ready, group=group) as server:
        line = say(server.port, asked)
        assert (line.severity, line.message) == (severity, f"127.0.0.1:{server.port} is {said}")
    assert severity is Severity.OK or "telemetry.port" in line.fix


def test_another_http_server_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]

        def answer() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b'HTTP/1.0 200 OK\r\n\r\n{"status": "UP"}')

        thread = threading.Thread(target=answer)
        thread.start()
        line = say(port)
        thread.join()
    assert (line.severity, "isn't a service of wait-registry" in line.message) == (Severity.ERROR, True)
    assert "telemetry.port" in line.fix
