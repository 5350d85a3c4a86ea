"""The watcher alone, with nobody to watch: it says so, goes on, and ends when asked to."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.support.waiting import wait_until
from wait_registry.cli.connect.watch_service import WatchService
from wait_registry.local.ports import free_ports
from wait_registry.settings.loading import load_settings


@pytest.fixture
def port() -> Iterator[int]:
    """Run a watcher of an address that nobody listens at; gives its telemetry port."""
    nobody, telemetry = free_ports(2)
    given = {"connect.url": f"http://127.0.0.1:{nobody}", "connect.watch_interval_s": "0.1"}
    service = WatchService(load_settings({**given, "telemetry.port": str(telemetry)}, env={}))
    thread = threading.Thread(target=service.run)
    thread.start()
    yield telemetry
    service.request_stop()
    thread.join(30)
    assert not thread.is_alive()


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
    except OSError:
        return 0, ""


def test_without_a_worker_it_lives_and_is_not_ready(port: int) -> None:
    wait_until(lambda: "no Kafka Connect worker answers" in get(port, "/health/ready")[1], what="the first look")
    status, body = get(port, "/health/ready")
    assert status == 503
    assert "start it, or correct connect.url" in json.loads(body)["reasons"][0]
    assert get(port, "/health/live")[0] == 200
    metrics = get(port, "/metrics")[1]
    assert "\nwaitreg_connect_up 0.0\n" in metrics
    assert "waitreg_connect_running{" not in metrics, "nothing is known"
