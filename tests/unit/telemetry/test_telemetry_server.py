"""The HTTP port of a service, asked by a real client."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings
from wait_registry.telemetry.health import Health
from wait_registry.telemetry.metrics import PROCESSOR_CONSUMED
from wait_registry.telemetry.server import MAX_CONNECTIONS, REQUEST_LIMIT_S, TelemetryServer


def well() -> Health:
    return Health(True)


def server(
    ready: Callable[[], Health] = well,
    live: Callable[[], Health] = well,
    read: Callable[[], Readings] = list,
    request_limit_s: float = REQUEST_LIMIT_S,
) -> TelemetryServer:
    registry = MetricsRegistry()
    registry.collect_from(read)
    return TelemetryServer("127.0.0.1", 0, registry, live, ready, request_limit_s)


def get(running: TelemetryServer, path: str) -> tuple[int, str, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{running.port}{path}", timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


def broken() -> Health:
    raise RuntimeError("secret detail")


@pytest.mark.parametrize(
    ("ready", "path", "status", "reasons"),
    [
        (well, "/health/live", 200, []),
        (well, "/health/ready", 200, []),
        (well, "/health/ready?verbose=1", 200, []),
        (lambda: Health.of(["no partitions", "broker away"]), "/health/ready", 503, ["no partitions", "broker away"]),
        (lambda: Health.of(["no partitions"]), "/health/live", 200, []),
        (broken, "/health/ready", 503, ["the check itself failed: RuntimeError"]),
    ],
)
def test_a_health_check_answers_with_its_reasons(
    ready: Callable[[], Health], path: str, status: int, reasons: list[str]
) -> None:
    with server(ready=ready) as running:
        code, kind, body = get(running, path)
    assert (code, kind) == (status, "application/json")
    assert json.loads(body) == {"ok": not reasons, "reasons": reasons}


def test_a_collector_that_raises_fails_the_scrape_and_not_the_server() -> None:
    def broken() -> Readings:
        raise RuntimeError("no numbers")

    with server(read=broken) as running:
        assert get(running, "/metrics")[0] == 500
        assert get(running, "/health/live")[0] == 200


def test_other_paths_answer_404_with_the_paths_there_are() -> None:
    with server() as running:
        status, _, body = get(running, "/")
    assert status == 404
    assert b"/metrics" in body


def test_a_taken_port_is_a_configuration_error_that_names_the_setting() -> None:
    with server() as running:
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{running.port} .*Set telemetry\.port"):
            TelemetryServer("127.0.0.1", running.port, MetricsRegistry(), well, well)


def test_a_scraper_that_disconnects_early_costs_no_line_in_the_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    answering, disconnected = threading.Event(), threading.Event()

    def read() -> Readings:
        answering.set()
        disconnected.wait(30)
        yield from (Reading(PROCESSOR_CONSUMED, 1, (f"topic {number} {'x' * 1000}",)) for number in range(10_000))

    with server(read=read) as running:
        client = socket.create_connection(("127.0.0.1", running.port))
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert answering.wait(30)
        # With a reset, so that the answer can't be written.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        disconnected.set()
        assert get(running, "/health/live")[0] == 200
    assert not [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]
    assert capfd.readouterr().err == ""


def test_a_client_that_does_not_read_its_answer_is_disconnected() -> None:
    def read() -> Readings:
        return (Reading(PROCESSOR_CONSUMED, 1, (f"topic {number} {'x' * 1000}",)) for number in range(20_000))

    with server(read=read, request_limit_s=0.5) as running:
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            with pytest.raises(ConnectionError):
                wait_until(lambda: client.send(b"x") == 0, 30, "the end of the connection", poll_s=0.02)


def ended(client: socket.socket) -> bool:
    """Return whether the server has closed this connection; its answer is dropped."""
    client.setblocking(False)
    try:
        return client.recv(65_536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_client_that_sends_its_request_slowly_is_disconnected() -> None:
    with server(request_limit_s=0.5) as running, socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n")

        def another_byte() -> bool:
            with contextlib.suppress(ConnectionError):
                client.send(b"x")
            return ended(client)

        wait_until(another_byte, 30, "the end of the connection", poll_s=0.02)


def test_a_request_without_an_end_is_given_up_at_a_size() -> None:
    with server() as running, socket.create_connection(("127.0.0.1", running.port)) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(b"GET /metrics HTTP/1.0\r\n" + b"X-Header: x\r\n" * 5_000)
        wait_until(lambda: ended(client), 30, "the end of the connection")
        assert get(running, "/health/live")[0] == 200


def test_connections_beyond_the_limit_are_closed_until_others_end() -> None:
    with server(request_limit_s=300) as running:
        before = threading.active_count()
        clients = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(3 * MAX_CONNECTIONS)]
        wait_until(lambda: sum(map(ended, clients)) == 2 * MAX_CONNECTIONS, 30, "the end of those beyond")
        assert threading.active_count() <= before + MAX_CONNECTIONS
        for client in clients:
            client.close()

        def answered() -> bool:
            with contextlib.suppress(OSError):
                return get(running, "/health/live")[0] == 200
            return False

        wait_until(answered, 30, "room")


@pytest.mark.parametrize("request_line", [b"POST /metrics HTTP/1.0", b"GET /metrics HTTP/9.9", b"\x16\x03\x01", b""])
def test_an_odd_request_is_refused_and_the_server_continues(request_line: bytes) -> None:
    with server(request_limit_s=0.5) as running:
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(request_line + b"\r\n\r\n")
            wait_until(lambda: ended(client), 30, "the end of the connection")
        assert get(running, "/health/live")[0] == 200


def test_an_answer_does_not_name_its_software() -> None:
    with server() as running, urllib.request.urlopen(f"http://127.0.0.1:{running.port}/metrics", timeout=30) as answer:
        assert "Python" not in str(answer.headers)
