"""Redrive, archive and restore in the console: from the dead letters to the job, and each delivery once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import SecretStr

from tests.integration.console.acting import BY_PROXY, Browser, acting
from tests.integration.redrive.scenario import Scenario
from tests.support.processes import Services
from tests.support.waiting import wait_until
from wait_registry.records.dead_letter import Reason
from wait_registry.records.operation import Changed, Kind, Mark, State
from waitreg.console.pages.dry_run import CONFIRM_ABOVE
from waitreg.local.ports import free_ports


@pytest.fixture
def browser(at: Scenario) -> Iterator[Browser]:
    """A console in which each user of this machine may act."""
    with acting(at.settings) as browser:
        yield browser


def test_what_a_dry_run_shows_is_what_its_form_starts(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(5)
    shown = browser.dry_run(f"group={at.group}", rate="100")
    assert shown.status == 200, shown.text
    assert "Redrive 5 dead letters" in shown.text and f"{at.target}, at 100 per second" in shown.text
    assert at.events() == []
    job = browser.start(shown, reason="payments are back")
    page = browser.wait_state(job, "finished")
    assert "5 of 5 dead letters, redriven: 5" in page.text
    assert "The tables show no record yet." in page.text
    assert len(at.sent()) == 5
    (asked,) = at.jobs()
    assert (asked.by, asked.authenticated, asked.via) == ("any user of this machine", False, "console")
    assert (asked.reason, asked.rate, asked.allowed) == ("payments are back", 100.0, ("no_members",))
    assert {mark.by for mark in at.events() if isinstance(mark, Mark)} == {asked.by}
    at.read_operations()
    assert at.rows("select distinct state, job from dead_letter") == [("redriven", asked.job)]


@pytest.mark.guarantee("R1.15")
def test_a_second_click_finds_the_job_of_the_first(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(3)
    shown = browser.dry_run(f"group={at.group}")
    with ThreadPoolExecutor(8) as pool:
        places = set(pool.map(lambda _: browser.start(shown), range(8)))
    (job,) = places
    browser.wait_state(job, "finished")
    assert browser.start(shown) == job
    assert len(at.jobs()) == 1
    assert len(at.sent()) == 3


@pytest.mark.guarantee("R1.1")
def test_of_two_operators_the_second_reads_what_the_first_did(at: Scenario) -> None:
    at.show_dead_letters(4)
    with acting(at.settings, **BY_PROXY, grants=("* operator",)) as browser:
        anna, ben = (Browser(browser.port, X_Forwarded_User=name) for name in ("anna", "ben"))
        first, second = (person.dry_run(f"group={at.group}") for person in (anna, ben))
        of_anna = anna.start(first)
        anna.wait_state(of_anna, "finished")
        of_ben = ben.start(second)
        page = ben.wait_state(of_ben, "finished").text
        assert "already_redriven: 4" in page and "No record was sent. The counts above say why." in page
        at.read_operations()
        page = ben.get(of_ben).text
        assert "Who acted on its dead letters before" in page
        assert "anna" in page and of_anna in page
    assert len(at.sent()) == 4
    assert [(job.by, job.authenticated) for job in at.jobs()] == [("anna", True), ("ben", True)]


def test_a_job_waits_for_the_others_of_its_group(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(15)
    shown = [browser.dry_run(f"group={at.group}", rate=rate) for rate in ("1", "500", "500", "500")]
    first, second, third, fourth = (browser.start(one) for one in shown)
    wait_until(lambda: len(at.sent()) >= 1, what="the first record")
    for path, before in ((second, first), (third, second), (fourth, third)):
        assert f'It waits for job <a href="{before}">' in browser.get(path).text
    assert browser.start(shown[1]) == second
    another = browser.dry_run(f"group={at.group}").token
    assert browser.post("/redrive/new", [("token", another), ("reason", "fixed")]).status == 409
    assert browser.post(f"{third}/cancel").status == 303
    assert browser.post(f"{fourth}/pause").status == 303
    assert "already_redriven: 15" in browser.wait_state(second, "finished").text
    browser.wait_state(third, "cancelled")
    browser.wait_state(fourth, "paused")
    assert browser.post(f"{fourth}/resume").status == 303
    assert "already_redriven: 15" in browser.wait_state(fourth, "finished").text
    assert len(at.sent()) == 15
    assert len(at.jobs()) == 4


def test_a_job_is_paused_resumed_and_cancelled(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(30)
    path = browser.start(browser.dry_run(f"group={at.group}", rate="1"))
    wait_until(lambda: len(at.sent()) >= 1, what="the first record")
    for action, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert browser.post(f"{path}/{action}", [("reason", f"to be {state}")]).status == 303
        wait_until(lambda state=state: f"State: {state}." in browser.get(path).text, what=state)
        if state == "paused":
            page = browser.wait_state(path, "paused").text
            assert "Resume the job" in page and "Pause the job" not in page
    wait_until(lambda: "It ran in this console" in browser.get(path).text, what="the end of the executor")
    refused = browser.post(f"{path}/resume")
    assert (refused.status, refused.links("^/jobs/")) == (400, [path])
    assert 1 <= len(at.sent()) < 30
    changes = [event for event in at.events() if isinstance(event, Changed)]
    assert {(event.by, event.authenticated) for event in changes} == {("any user of this machine", False)}
    assert [event.state for event in changes] == [State.PAUSED, State.RUNNING, State.CANCELLED]
    at.read_operations()
    audit, deliveries = (browser.get(f"/audit{query}").text for query in ("", "?deliveries=yes"))
    assert [event.reason for event in changes] == ["to be paused", "to be running", "to be cancelled"]
    assert all(event.reason in audit for event in changes)
    assert at.target not in audit and at.target in deliveries


def test_a_paused_job_that_is_cancelled_is_shown_as_cancelled(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(30)
    path = browser.start(browser.dry_run(f"group={at.group}", rate="1"))
    wait_until(lambda: len(at.sent()) >= 1, what="the first record")
    assert browser.post(f"{path}/pause").status == 303
    browser.wait_state(path, "paused")
    at.read_operations()
    shown = browser.get(browser.post(f"{path}/cancel").headers["Location"]).text
    assert "It was asked to be cancelled." in shown
    at.read_operations()
    shown = browser.get(path).text
    assert "State: cancelled." in shown and "asked to be" not in shown and "Resume the job" not in shown


def test_a_console_that_stops_pauses_its_jobs_and_another_resumes_them(at: Scenario) -> None:
    at.show_dead_letters(6)
    with acting(at.settings) as browser:
        shown, later = (browser.dry_run(f"group={at.group}", rate="1") for _ in range(2))
        path, waiting = browser.start(shown), browser.start(later)
        wait_until(lambda: len(at.sent()) >= 1, what="the first record")
        assert "It waits for job" in browser.get(waiting).text
    paused = [event.job for event in at.events() if isinstance(event, Changed) and event.state is State.PAUSED]
    assert paused == [one.removeprefix("/jobs/") for one in (path, waiting)]
    at.read_operations()
    with acting(at.settings) as browser:
        again = browser.post("/redrive/new", [("token", shown.token), ("reason", "fixed")])
        assert (again.status, "perhaps it was restarted" in again.text) == (400, True)
        assert "Resume the job" in browser.get(path).text
        assert browser.post(f"{path}/resume").status == 303
        browser.wait_state(path, "finished")
    assert sorted(record.value or b"" for record in at.sent()) == [b"value %d" % number for number in range(6)]


@pytest.mark.guarantee("R1.15")
def test_consoles_with_one_key_start_one_job_for_a_form(at: Scenario) -> None:
    at.show_dead_letters(6)
    key = {"signing_key": SecretStr("a key that several consoles have in common")}
    with acting(at.settings, **key) as one, acting(at.settings, **key) as other:
        shown = one.dry_run(f"group={at.group}")
        path = other.start(shown)
        other.wait_state(path, "finished")
        assert one.start(shown) == path
        one.wait_state(path, "finished")
    assert len(at.jobs()) == 1
    assert len(at.sent()) == 6


@pytest.mark.guarantee("R1.3")
def test_after_a_kill_of_the_console_its_job_is_resumed(at: Scenario, services: Services) -> None:
    at.show_dead_letters(6)
    (port,) = free_ports(1)
    own = at.settings.console.model_copy(update={"read_only": False, "port": port})
    killed = services.start("console", at.settings.model_copy(update={"console": own}))
    browser = Browser(port)
    wait_until(browser.answers, what="the console answers")
    path = browser.start(browser.dry_run(f"group={at.group}", rate="1"))
    wait_until(lambda: len(at.sent()) >= 1, what="the first record")
    killed.kill()
    at.read_operations()
    assert at.rows("select state from operation") == [("running",)]
    with acting(at.settings) as browser:
        assert "This console doesn't run it" in browser.get(path).text
        assert browser.post(f"{path}/resume").status == 303
        browser.wait_state(path, "finished")
    assert sorted(record.value or b"" for record in at.sent()) == [b"value %d" % number for number in range(6)]


def test_a_start_with_other_options_than_those_of_the_dry_run_leads_to_another(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(3)
    shown = browser.dry_run(f"group={at.group}", rate="100")
    fields = {"token": shown.token, "reason": "fixed", "limit": "", "canary": "", "to": "redelivery", "rate": "100"}
    allowed = ("allow", "no_members")
    for other in ({"limit": "1"}, {"rate": "50"}, {"rate": ""}, {"canary": "2"}, {"allow": "may_be_done"}):
        form = [("where", f"group={at.group}"), *{**fields, **other}.items(), allowed]
        answer = browser.post("/redrive/new", form)
        again = browser.get(answer.headers["Location"])
        assert (answer.status, again.status, "Nothing was started yet" in again.text) == (303, 200, True), other
    assert at.events() == []
    browser.wait_state(browser.start(again), "finished")
    (asked,) = at.jobs()
    assert (asked.rate, asked.allowed) == (100.0, ("may_be_done", "no_members"))
    assert browser.post("/redrive/new", [*fields.items(), allowed]).status == 303


def test_many_are_confirmed_by_their_number(at: Scenario, browser: Browser) -> None:
    count = CONFIRM_ABOVE + 1
    at.show_dead_letters(count)
    shown = browser.dry_run(f"group={at.group}", rate="500")
    assert f"type {count}, the number of dead letters" in shown.text
    for number in ({}, {"number": "1"}):
        refused = browser.post("/redrive/new", [("token", shown.token), ("reason", "fixed"), *number.items()])
        assert (refused.status, "type this number" in refused.text) == (400, True)
    assert at.events() == []
    browser.wait_state(browser.start(shown, number=str(count)), "finished")
    assert len(at.sent()) == count
    assert "Redrive 0" not in browser.dry_run(f"group={at.group}", limit="1").text


def test_a_page_offers_no_job_that_names_no_dead_letter(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(1)
    for chosen, named in (((), False), ([("where", "state=open")], False), ([("where", f"group={at.group}")], True)):
        assert ("All that the conditions mean" in browser.get("/dead-letters", *chosen).text) == named
        assert ("add a condition such as" in browser.get("/dead-letters", *chosen).text) != named


def test_dead_letters_are_archived_and_restored_from_their_pages(at: Scenario, browser: Browser) -> None:
    at.show_dead_letters(3)
    listed = browser.get("/dead-letters", ("by", "none"))
    ticked = re.findall(r'form="ticked" name="where" value="([^"]*)"', listed.body.decode())
    assert len(ticked) == 3
    page = browser.get(f"/dead-letters/{at.place().topic}/{at.place().partition}/{at.place().offset}")
    offered = re.findall(r'<form action="/([a-z]+)/new">', page.body.decode())
    assert offered == [Kind.REDRIVE, Kind.ARCHIVE]
    for kind, state in ((Kind.ARCHIVE, "archived"), (Kind.RESTORE, "open")):
        shown = browser.dry_run(*ticked[:2], kind=kind, allow="")
        assert f"{kind.value.capitalize()} 2 dead letters" in shown.text, shown.text
        browser.wait_state(browser.start(shown, kind=kind), "finished")
        at.read_operations()
        assert at.rows("select state from dead_letter order by job nulls last limit 2") == [(state,), (state,)]
        ((place,),) = at.rows(
            "select topic || '/' || partition || '/' || \"offset\" from dead_letter where job > '' limit 1"
        )
        assert "reason of the job</dt><dd>fixed" in re.sub(
            r"\s*\n", "", browser.get(f"/dead-letters/{place}").body.decode()
        )
    of_group = ("where", f"group={at.group}")
    empty = browser.get("/dead-letters", of_group, ("where", "state=redriven"), ("by", "none"))
    (longer,) = empty.links(r"^/dead-letters\?.*since=30d")
    assert "List them in any state" in empty.text and "where=state%3Dredriven" in longer
    (any_state,) = empty.links(r"^/dead-letters\?(?!.*state)")
    assert len(browser.get(any_state).links("^/dead-letters/")) == 3
    assert at.sent() == []


def test_the_categories_of_a_dry_run_add_up(at: Scenario, browser: Browser) -> None:
    at.dead_letters(2)
    at.show_dead_letters(3, Reason.EXPIRED)
    shown = browser.dry_run(f"group={at.group}", allow="")
    rows = re.findall(r'<td class="number">(\d+)</td><t[dh][^>]*>(\w+)<', shown.body.decode())
    *categories, (total, _) = rows
    assert sum(int(count) for count, _ in categories) == int(total) == 5
    assert "There is nothing to redrive." in shown.text
    assert shown.text.count("/dead-letters/") >= 2
