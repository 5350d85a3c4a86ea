"""A redrive of many dead letters begins only when another person has approved it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.integration.console.acting import BY_PROXY, Browser, acting
from tests.integration.redrive.scenario import Scenario
from tests.support.jobs import ask_for_approval
from tests.support.settings import changed
from wait_registry.records.operation import Approved, Changed, State
from waitreg.redrive.operator_events import approve, change
from waitreg.redrive.request import Asker

BEN = Asker("ben", authenticated=True, via="console")
EVE = Asker("eve", authenticated=True, via="console")
OTHERS = ("* operator",)


@pytest.fixture
def many(at: Scenario) -> Scenario:
    """Four dead letters, of which three may be redriven without an approval."""
    at.settings = changed(at.settings, "redrive", approve_above=3)
    at.show_dead_letters(4)
    return at


@contextmanager
def people(at: Scenario) -> Iterator[tuple[Browser, Browser, Browser]]:
    """Serve a console; what is yielded are the browsers of anna, ben and vera, who only looks."""
    with acting(at.settings, **BY_PROXY, grants=("* viewer", "anna operator", "ben operator")) as served:
        anna, ben, vera = (Browser(served.port, X_Forwarded_User=name) for name in ("anna", "ben", "vera"))
        yield anna, ben, vera


def states(at: Scenario) -> list[str]:
    """Return what changed the state of a job, in the order of the operations topic."""
    events = [event for event in at.events() if isinstance(event, Changed | Approved)]
    return [event.state.value if isinstance(event, Changed) else f"approved by {event.by}" for event in events]


@pytest.mark.guarantee("R1.17")
def test_a_job_that_awaits_an_approval_is_run_by_no_executor(many: Scenario) -> None:
    job = many.request().job
    for _ in range(2):
        assert many.execute(job).state is State.AWAITING
    for state in (State.RUNNING, State.PAUSED):
        change(many.settings, job.job, state, EVE, "")
        assert many.execute(job).state is State.AWAITING
    approve(many.settings, job.job, Asker(job.by, authenticated=True, via="console"), "I am sure")
    assert many.execute(job).state is State.AWAITING
    # Also with the events in the tables, and by an executor that knows of no limit.
    many.read_operations()
    many.settings = changed(many.settings, "redrive", approve_above=None)
    assert many.execute(job.model_copy(update={"approval": False})).state is State.AWAITING
    assert many.sent() == []
    assert many.rows("select state, approved_by from operation") == [("awaiting", None)]
    approve(many.settings, job.job, BEN, "looked at them")
    assert many.execute(job).state is State.FINISHED
    assert len(many.sent()) == 4
    many.read_operations()
    assert many.rows("select state, approved_by from operation") == [("finished", "ben")]


def test_what_is_cancelled_is_not_approved(many: Scenario) -> None:
    job = many.request().job
    ask_for_approval(many.settings, job)
    change(many.settings, job.job, State.CANCELLED, EVE, "a mistake")
    approve(many.settings, job.job, BEN, "looked at them")
    assert many.execute(job).state is State.CANCELLED
    many.read_operations()
    assert many.execute(job).state is State.CANCELLED
    assert many.sent() == []


@pytest.mark.guarantee("R1.17")
def test_a_job_that_finds_more_than_its_dry_run_ends_without_an_approval(many: Scenario) -> None:
    job = many.request().job.model_copy(update={"expected": {"redriven": 3, "target_unread": 1}})
    assert many.execute(job).state is State.FINISHED
    assert len(many.sent()) == 3
    (changed,) = [event for event in many.events() if isinstance(event, Changed)]
    assert changed.reason == "more meet its conditions now than its dry run counted"


@pytest.mark.guarantee("R1.17")
def test_a_job_awaits_an_approval_that_the_setting_asks_for_after_it_began(at: Scenario) -> None:
    at.show_dead_letters(4)
    job = at.pause(at.request().job)
    at.settings = changed(at.settings, "redrive", approve_above=3)
    assert at.execute(job).state is State.AWAITING
    assert at.sent() == [] and states(at) == ["paused", "awaiting"]
    at.read_operations()
    assert at.rows("select detail from operator_event where event = 'awaiting'") == [
        ("it needs the approval of another person",)
    ]
    assert at.execute(job).state is State.AWAITING
    approve(at.settings, job.job, BEN, "looked at them")
    assert at.execute(job).state is State.FINISHED
    assert len(at.sent()) == 4
    assert states(at) == ["paused", "awaiting", "approved by ben", "finished"]


def test_another_person_approves_on_the_page(many: Scenario) -> None:
    with people(many) as (anna, ben, vera):
        shown = anna.dry_run(f"group={many.group}")
        assert "Another person has to approve this job" in shown.text
        path = anna.start(shown)
        assert anna.start(shown) == path
        for _ in ("from memory", "from the tables"):
            assert "another person has to approve it" in anna.get(path).text
            many.read_operations()
        page = ben.get(path)
        assert f"group={many.group}" in page.text and "4 dead letters" in page.text
        assert "Approve the job" in page.text and "Resume" not in page.text and "Pause" not in page.text
        (listed,) = page.links(r"^/dead-letters\?")
        assert len(ben.get(listed).links(r"^/dead-letters/")) == 4
        assert "needs the role operator" in vera.get(path).text
        for person, status in ((anna, 403), (vera, 403)):
            assert person.post(f"{path}/approve", [("reason", "sure")]).status == status
        assert ben.post(f"{path}/approve", [("reason", " ")]).status == 400
        assert ben.post(f"{path}/resume").status == 400
        assert many.sent() == [] and states(many) == []
        assert ben.post(f"{path}/approve", [("reason", "looked at them")]).status == 303
        ben.wait_state(path, "finished")
        assert ben.post(f"{path}/approve", [("reason", "looked at them")]).status == 400
        many.read_operations()
        assert "approved by" in anna.get(path).text
        assert f"/dead-letters?where=job%3D{path.removeprefix('/jobs/')}&since=365d&by=none" in anna.get(path).links(
            "job"
        )
    assert len(many.sent()) == 4
    assert len(many.jobs()) == 1
    assert states(many) == ["approved by ben", "finished"]
    assert many.rows('select event, done_by, authenticated, detail from operator_event order by "offset"') == [
        ("approved", "ben", True, "looked at them"),
        ("finished", "anna", None, ""),
    ]


def test_two_approvals_at_once_start_one_job(many: Scenario) -> None:
    with acting(many.settings, **BY_PROXY, grants=OTHERS) as served:
        anna, ben, eve = (Browser(served.port, X_Forwarded_User=name) for name in ("anna", "ben", "eve"))
        path = anna.start(anna.dry_run(f"group={many.group}"))
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(person.post, f"{path}/approve", [("reason", "fixed")]) for person in (ben, eve)]
            assert {one.result().status for one in asked} <= {303, 400}
        ben.wait_state(path, "finished")
    assert len(many.sent()) == 4
    # The second approval may come when the job has finished, and changes nothing then.
    assert [state for state in states(many) if not state.startswith("approved")][-1] == "finished"
    assert states(many).count("finished") == 1
    many.read_operations()
    assert many.rows("select state from operation") == [("finished",)]


def test_who_asked_cancels_on_the_page(many: Scenario) -> None:
    with people(many) as (anna, ben, _):
        path = anna.start(anna.dry_run(f"group={many.group}"))
        assert anna.post(f"{path}/cancel").status == 303
        assert ben.post(f"{path}/approve", [("reason", "late")]).status == 400
    assert states(many) == ["cancelled"]


def test_without_names_that_are_checked_no_page_approves(many: Scenario) -> None:
    ask_for_approval(many.settings, many.request().job)
    many.read_operations()
    with acting(many.settings) as browser:
        assert "Only people whose names the console checks" in browser.get("/jobs/job-1").text
        assert browser.post("/jobs/job-1/approve", [("reason", "fixed")]).status == 403
