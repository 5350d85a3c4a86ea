"""A telemetry port that is taken is fine when the service that is looked at has it, and an error otherwise."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

import pytest

from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry, Reading
from wait_registry.telemetry.health import Health
from wait_registry.telemetry.metrics import READY
from wait_registry.telemetry.server import TelemetryServer
from waitreg.commands.check_line import CheckLine, Standing
from waitreg.commands.checks.telemetry_port import telemetry_port

ALL: Sequence[Service] = ("processor", "sink", "sweeper")


def say(port: int, services: Sequence[Service] = ALL) -> CheckLine:
    settings = Settings.model_validate({"telemetry": {"host": "127.0.0.1", "port": port}})
    [line] = telemetry_port(services, settings)
    return line


def running(service: str, *reasons: str) -> TelemetryServer:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [Reading(READY, 1, (service,))])
    return TelemetryServer("127.0.0.1", 0, registry, lambda: Health(True), lambda: Health.of(reasons))


def test_a_free_port_is_well_and_stays_free() -> None:
    with running("sink") as server:
        port = server.port
    assert say(port).seen == f"127.0.0.1:{port} is free"
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    ("reasons", "state"), [((), "ready"), (("no partitions assigned",), "not ready: no partitions assigned")]
)
def test_the_service_itself_may_have_it(reasons: tuple[str, ...], state: str) -> None:
    with running("processor", *reasons) as server:
        for services in (ALL, ("processor",)):
            line = say(server.port, services)  # type: ignore[arg-type]
            assert line.standing is Standing.OK
            assert line.seen == f"127.0.0.1:{server.port} is in use by a running processor, {state}"


def test_another_service_of_ours_may_not() -> None:
    with running("sink") as server:
        line = say(server.port, ("processor",))
    assert (line.standing, "taken by a running sink" in line.seen) == (Standing.ERROR, True)
    assert "telemetry.port" in line.mend


def test_a_stranger_may_not_even_when_it_speaks_http() -> None:
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
    assert (line.standing, "isn't a service of the wait registry" in line.seen) == (Standing.ERROR, True)
    assert "telemetry.port" in line.mend
