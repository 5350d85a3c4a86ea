"""The watch restarts what has failed, at once, after growing pauses, then at the pace of the limit."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.http_service import HttpService
from tests.unit.connect.fake_worker import answering, listed, refusing, state
from wait_registry.settings.connect import ConnectSettings
from wait_registry.settings.loading import load_settings
from waitreg.connect.restarts import Restarts
from waitreg.connect.watch import Look, WatchService


def failed_tasks_of(states: Mapping[str, str]) -> bytes:
    """Return a worker's answer: connectors in these states, each with a task that has failed."""
    return json.dumps({name: listed(name, own, "FAILED", kind="source") for name, own in states.items()}).encode()


def watching(worker: HttpService) -> WatchService:
    return WatchService(load_settings({"connect.url": worker.address}, env={}), lambda: 0.0)


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


def limits(first_s: float, longest_s: float, limit: int, window_s: float) -> ConnectSettings:
    return ConnectSettings(
        restart_backoff_s=first_s, restart_backoff_max_s=longest_s, restart_limit=limit, restart_window_s=window_s
    )


RULES = limits(5, 60, 10, 1800)


def played(rules: ConnectSettings, looks: Sequence[tuple[float, bool]]) -> list[float]:
    """Return when it was restarted, of looks (pause before it in s, whether it has failed)."""
    restarts, now, times = Restarts(rules), 1000.0, []
    for pause_s, failed in looks:
        now += pause_s
        if failed and restarts.due(now):
            restarts.note(now)
            times.append(now)
    return times


def test_pauses_grow_from_none_to_the_longest_then_to_the_pace() -> None:
    assert Restarts(RULES).due(0.0)
    times = played(RULES, [(1.0, True)] * 2000)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:9] == [5, 10, 20, 40, 60, 60, 60, 60, 60]
    assert set(pauses[9:]) == {180}


def test_the_limit_is_reached_until_the_connector_runs_again() -> None:
    restarts, now = Restarts(RULES), 0.0
    while not restarts.limit_reached(now):
        if restarts.due(now):
            restarts.note(now)
        now += 1
    for _ in range(4000):
        now += 1
        if restarts.due(now):
            restarts.note(now)
        assert restarts.limit_reached(now)
    assert not restarts.limit_reached(now + 2 * restarts.apart_s), "it has run for longer than restarts are apart"
    assert restarts.due(now + RULES.restart_window_s)


# Whole seconds, so that every sum is exact.
rules = st.builds(
    lambda first, longest, limit, apart: limits(min(first, longest, apart), min(longest, apart), limit, limit * apart),
    st.integers(1, 30),
    st.integers(1, 400),
    st.integers(1, 12),
    st.integers(5, 400),
)
LOOKS = st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=200)


def most_in_a_window(rules: ConnectSettings, times: list[float]) -> int:
    """Return the most restarts of any window, which holds its beginning and not its end."""
    return max((sum(start <= time < start + rules.restart_window_s for time in times) for start in times), default=0)


@given(rules, LOOKS)
def test_no_window_sees_twice_the_limit(rules: ConnectSettings, looks: list[tuple[float, bool]]) -> None:
    assert most_in_a_window(rules, played(rules, looks)) < 2 * rules.restart_limit


@pytest.mark.parametrize("limit", range(1, 13))
def test_the_worst_window_sees_one_less_than_twice_the_limit(limit: int) -> None:
    rules = limits(1, 2, limit, 100 * limit)
    assert most_in_a_window(rules, played(rules, [(1, True)] * 400 * limit)) == 2 * limit - 1


@given(rules, LOOKS)
def test_from_the_limit_on_restarts_keep_the_pace(rules: ConnectSettings, looks: list[tuple[float, bool]]) -> None:
    times = played(rules, looks)
    for before, (earlier, later) in enumerate(pairwise(times), 1):
        window = [time for time in times[:before] if time > later - rules.restart_window_s]
        assert len(window) < rules.restart_limit or later - earlier >= Restarts(rules).apart_s


@given(rules, st.integers(1, 5))
def test_a_connector_that_always_fails_is_restarted_at_the_pace(rules: ConnectSettings, windows: int) -> None:
    times = played(rules, [(1, True)] * int(windows * rules.restart_window_s))
    assert all(later - earlier <= Restarts(rules).apart_s for earlier, later in pairwise(times))
    assert len(times) >= windows * rules.restart_limit
