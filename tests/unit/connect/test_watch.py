"""The watch restarts what has failed, at once, then after growing pauses."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from itertools import pairwise

import pytest

from tests.support.http_service import HttpService
from tests.unit.connect.fake_worker import answering, listed, refusing, state
from wait_registry.settings.loading import load_settings
from waitreg.connect.watch import Look, WatchService


def failed_tasks_of(states: Mapping[str, str]) -> bytes:
    """Return a worker's answer: connectors in these states, each with a task that has failed."""
    return json.dumps({name: listed(name, own, "FAILED", kind="source") for name, own in states.items()}).encode()


def watching(worker: HttpService) -> WatchService:
    return WatchService(load_settings({"connect.url": worker.address}, env={}))


def test_failed_connectors_are_restarted_unless_an_operator_holds_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "waitreg.connect.watch")
    body = failed_tasks_of({"wait.sink": "RUNNING", "dead_letter.sink": "PAUSED", "expired.source": "STOPPED"})
    with answering(200, body) as worker:
        assert watching(worker).run_once().restarted == ("wait.sink",)
        assert [call.path.split("/")[2] for call in worker.calls if "restart" in call.path] == ["wait.sink"]
    (restarted,) = [record.getMessage() for record in caplog.records if "restarted" in record.getMessage()]
    assert "restarted wait.sink; it had failed" in restarted


def test_a_failure_that_cannot_be_restarted_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "waitreg.connect.watch")
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


def test_pauses_between_restarts_grow_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    monkeypatch.setattr("random.random", lambda: 1.0)
    times = []
    with answering(200, failed_tasks_of({"wait.sink": "RUNNING"})) as worker:
        watch = watching(worker)
        while now_s < 2200:
            if watch.run_once().restarted:
                times.append(now_s)
            now_s += 5
    assert [later - earlier for earlier, later in pairwise(times)] == [5, 10, 20, 40, 80, 160, 180, 180, 180, 180]
