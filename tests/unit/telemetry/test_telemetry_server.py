"""The metrics of a service, and its HTTP port, asked by a real client."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.all_metrics import ALL_METRICS
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.service.health import Health
from wait_registry.telemetry.exposition import HistogramReading, MetricsRegistry, Reading, Readings
from wait_registry.telemetry.metrics import BUILD_INFO, PROCESSOR_CONSUMED, Metric
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
def test_a_health_check_has_reasons(ready: Callable[[], Health], path: str, status: int, reasons: list[str]) -> None:
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
            TelemetryServer("127.0.0.1", running.port, MetricsRegistry(), well, well).start()


def test_an_early_disconnect_costs_no_line(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
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


COUNTER = Metric("waitreg_test_records_total", "counter", "Records", ("topic",))
GAUGE = Metric("waitreg_test_depth", "gauge", "Depth")
HISTOGRAM = Metric("waitreg_test_seconds", "histogram", "Seconds", ("outcome",), (0.1, 1.0))


def samples(registry: MetricsRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(registry.expose().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_instruments_count() -> None:
    registry = MetricsRegistry()
    registry.counter(COUNTER).labels("orders").inc(2)
    registry.gauge(GAUGE).set(5)
    registry.histogram(HISTOGRAM).labels("done").observe(0.5)
    seen = samples(registry)
    assert seen["waitreg_test_records_total", (("topic", "orders"),)] == 2
    assert seen["waitreg_test_depth", ()] == 5
    assert seen["waitreg_test_seconds_bucket", (("le", "0.1"), ("outcome", "done"))] == 0
    assert seen["waitreg_test_seconds_bucket", (("le", "1.0"), ("outcome", "done"))] == 1


def test_plain_numbers_are_read_at_every_scrape() -> None:
    counts = {"orders": 1, "refunds": 7}

    def read() -> Readings:
        yield from (Reading(COUNTER, count, (topic,)) for topic, count in counts.items())
        yield Reading(GAUGE, 3)

    registry = MetricsRegistry()
    registry.collect_from(read)
    assert samples(registry)["waitreg_test_records_total", (("topic", "orders"),)] == 1
    counts["orders"] = 2
    seen = samples(registry)
    assert seen["waitreg_test_records_total", (("topic", "orders"),)] == 2
    assert seen["waitreg_test_records_total", (("topic", "refunds"),)] == 7
    assert seen["waitreg_test_depth", ()] == 3


def test_a_histogram_is_read_from_counts_per_bucket() -> None:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [HistogramReading(HISTOGRAM, (4, 2, 1), 9.5, ("done",))])
    seen = samples(registry)
    labels = (("outcome", "done"),)
    assert seen["waitreg_test_seconds_bucket", (("le", "0.1"), *labels)] == 4
    assert seen["waitreg_test_seconds_bucket", (("le", "1.0"), *labels)] == 6
    assert seen["waitreg_test_seconds_bucket", (("le", "+Inf"), *labels)] == 7
    assert seen["waitreg_test_seconds_count", labels] == 7
    assert seen["waitreg_test_seconds_sum", labels] == 9.5


def test_a_wrong_number_of_buckets_is_refused() -> None:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [HistogramReading(HISTOGRAM, (1, 2), 1.0, ("done",))])
    with pytest.raises(ValueError, match="waitreg_test_seconds has 3 buckets, not 2"):
        registry.expose()


@pytest.mark.parametrize("metric", ALL_METRICS, ids=lambda metric: metric.name)
def test_a_metric_keeps_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"waitreg_((processor|sink|sweeper|connect)_)?[a-z]+(_[a-z]+)*", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert (metric.kind == "histogram") == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.help
    assert not metric.help.endswith(".")


def test_every_metric_can_be_registered_in_one_process() -> None:
    registry = MetricsRegistry()
    for metric in ALL_METRICS:
        if metric is not BUILD_INFO:  # every registry has it
            getattr(registry, metric.kind)(metric)
    text = registry.expose().decode()
    assert "# HELP python_info " in text, "the process itself is measured too"
    for metric in ALL_METRICS:
        assert f"# HELP {metric.name} {metric.help}\n" in text
