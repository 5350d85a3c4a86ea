"""The watch restarts what has failed, logs each change once, and continues while no worker answers."""

from __future__ import annotations

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

import pytest

from tests.support.http_service import HttpService
from tests.support.waiting import wait_until
from tests.unit.connect_command.fake_worker import answering, listed, refusing, state
from wait_registry.cli.connect.watch import Look, WatchService
from wait_registry.local.ports import free_ports
from wait_registry.settings.loading import load_settings


def failed_tasks_of(states: Mapping[str, str]) -> bytes:
    """Return a worker's answer: connectors in these states, each with a task that has failed."""
    return json.dumps({name: listed(name, own, "FAILED", kind="source") for name, own in states.items()}).encode()


def watching(worker: HttpService) -> WatchService:
    return WatchService(load_settings({"connect.url": worker.address}, env={}), lambda: 0.0)


def test_failed_connectors_are_restarted_unless_an_operator_holds_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wait_registry.cli.connect.watch")
    body = failed_tasks_of({"wait.sink": "RUNNING", "dead_letter.sink": "PAUSED", "expired.source": "STOPPED"})
    with answering(200, body) as worker:
        assert watching(worker).run_once().restarted == ("wait.sink",)
        assert [call.path.split("/")[2] for call in worker.calls if "restart" in call.path] == ["wait.sink"]
    (restarted,) = [record.getMessage() for record in caplog.records if "restarted" in record.getMessage()]
    assert "restarted wait.sink; it had failed" in restarted


def test_a_failure_that_cannot_be_restarted_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wait_registry.cli.connect.watch")
    refused = 500, refusing("ConfigException: Could not read properties from file")
    with answering(200, failed_tasks_of({"wait.sink": "RUNNING"}), posted=refused) as worker:
        look = watching(worker).run_once()
    assert (look.trouble, look.restarted) == (None, ())
    (warned,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "can't be restarted" in warned


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (Look("no answer"), "no answer"),
        (Look(), "no connector to watch"),
        (Look(None, (state("a", "RUNNING", "RUNNING"),), ("b",)), "connector b doesn't exist"),
        (Look(None, (state("a", "RUNNING", "FAILED"),)), None),  # it does its work: it restarts
    ],
)
def test_a_watch_is_not_ready_while_it_watches_nothing(look: Look, reason: str | None) -> None:
    found = look.reasons()
    assert reason in found[0] if reason else found == [], found


@pytest.fixture
def port() -> Iterator[int]:
    """Run a watch of a closed port; gives its telemetry port."""
    closed, telemetry = free_ports(2)
    given = {"connect.url": f"http://127.0.0.1:{closed}", "connect.watch_interval_s": "0.1"}
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


def test_without_a_worker_it_is_alive_and_not_ready(port: int) -> None:
    wait_until(lambda: "no Kafka Connect worker answers" in get(port, "/health/ready")[1], what="the first look")
    status, body = get(port, "/health/ready")
    assert status == 503
    assert "start it, or correct connect.url" in json.loads(body)["reasons"][0]
    assert get(port, "/health/live")[0] == 200
    metrics = get(port, "/metrics")[1]
    assert "\nwaitreg_connect_up 0.0\n" in metrics
    assert "waitreg_connect_running{" not in metrics, "nothing is known"
