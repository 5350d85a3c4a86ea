"""The rate of a job is changed while it runs, and it keeps the new one."""

from __future__ import annotations

import pytest

from tests.integration.console.acting import Browser, acting
from tests.integration.redrive.scenario import Scenario
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.records.operation import Advanced, Mark, Requested, State
from waitreg.redrive.operator_events import change_rate
from waitreg.redrive.request import Asker

ANNA = Asker("anna", authenticated=False, via="command")


@pytest.fixture
def slow(at: Scenario) -> Requested:
    """A paused job that would take half an hour for thirty dead letters."""
    at.show_dead_letters(30)
    return at.pause(at.request(rate=1 / 60).job)


def largest_chunk(at: Scenario) -> int:
    """Return how many dead letters the largest chunk had."""
    sizes, size = [0], 0
    for event in at.events():
        if isinstance(event, Mark):
            size += 1
        elif isinstance(event, Advanced):
            sizes, size = [*sizes, size], 0
    return max(sizes)


@pytest.mark.parametrize("read", [False, True], ids=["in the tail", "in the tables"])
def test_a_job_has_the_rate_that_was_asked_for_last(at: Scenario, slow: Requested, read: bool) -> None:
    for rate in (0.5, 2.0, 400.0):
        change_rate(at.settings, slow.job, rate, ANNA, "")
    if read:
        at.read_operations()
    assert at.execute(slow).state is State.FINISHED
    assert len(at.sent()) == 30
    at.read_operations()
    assert at.rows("select rate, state from operation") == [(400.0, "finished")]
    details = at.rows("select detail from operator_event where event = 'rate' order by \"offset\"")
    assert details == [("0.5 per second",), ("2 per second",), ("400 per second",)]


def test_a_lower_rate_makes_the_next_chunk_smaller(at: Scenario, slow: Requested) -> None:
    change_rate(at.settings, slow.job, 3.0, ANNA, "")
    assert at.execute(slow.model_copy(update={"rate": 500.0, "limit": 6})).state is State.FINISHED
    assert largest_chunk(at) == 3


def test_no_rate_is_above_the_limit_of_the_settings(at: Scenario, slow: Requested) -> None:
    change_rate(at.settings, slow.job, 9_999.0, ANNA, "")
    at.settings = changed(at.settings, "redrive", max_rate=4.0)
    assert at.execute(slow.model_copy(update={"limit": 8})).state is State.FINISHED
    assert largest_chunk(at) == 4


def test_the_page_changes_the_rate_of_a_job_that_runs(at: Scenario) -> None:
    at.show_dead_letters(30)
    with acting(at.settings) as browser:
        path = browser.start(browser.dry_run(f"group={at.group}", rate="1"))
        wait_until(lambda: len(at.sent()) >= 1, what="the first record")
        at.read_operations()
        assert "Change the rate" in browser.get(path).text
        for wrong in ("", "0", "-1", "nan", "inf", "501", "fast"):
            assert refused(browser, path, wrong) == 400
        assert browser.post(f"{path}/rate", [("rate", "500")]).status == 303
        browser.wait_state(path, "finished")
        assert refused(browser, path, "20") == 400
        at.read_operations()
        assert "500" in browser.get(path).text and "Change the rate" not in browser.get(path).text
    assert len(at.sent()) == 30


def refused(browser: Browser, path: str, rate: str) -> int:
    """Return the status that a rate gets."""
    return browser.post(f"{path}/rate", [("rate", rate)]).status
