"""What masks hide is shown to a person with the role, after their reason is recorded."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.integration.console.acting import BY_PROXY, Browser, acting
from tests.integration.redrive.scenario import Scenario
from tests.support.console import running_console
from tests.support.settings import changed
from wait_registry.records.operation import Place, Revealed
from wait_registry.settings.tree import Settings
from waitreg.console.actions import tokens as signed

MASKED: Final = {**BY_PROXY, "grants": ("ada admin", "eve admin", "olga operator"), "masks": ("* value", "* key")}
SECRETS: Final = (r"value \d", r"key-\d", r"order \d")


@pytest.fixture
def dead(at: Scenario) -> Scenario:
    """A group with two dead letters that the tables show."""
    at.show_dead_letters(2)
    return at


@contextmanager
def people(settings: Settings) -> Iterator[tuple[Browser, Browser, Browser]]:
    """Serve a console with masks; what is yielded are the browsers of ada, eve and olga."""
    with acting(settings, **MASKED) as served:
        ada, eve, olga = (Browser(served.port, X_Forwarded_User=name) for name in ("ada", "eve", "olga"))
        yield ada, eve, olga


def page_of(place: Place) -> str:
    """Return the address of a dead letter."""
    return f"/dead-letters/{place.topic}/{place.partition}/{place.offset}"


def shows(browser: Browser, page: str) -> bool:
    """Return whether a page shows all that is hidden, or none of it."""
    text = browser.get(page).text
    found = {re.search(secret, text) is not None for secret in SECRETS}
    assert len(found) == 1, text
    return found.pop()


@pytest.mark.guarantee("R1.18")
def test_the_reason_is_recorded_and_then_the_contents_are_shown(
    dead: Scenario, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    page = page_of(dead.place())
    with people(dead.settings) as (ada, eve, olga), caplog.at_level(logging.INFO):
        assert not shows(ada, page)
        assert "Show what is hidden" in ada.get(page).text
        assert "you need the role admin" in olga.get(page).text
        assert olga.post(f"{page}/reveal", [("reason", "curious")]).status == 403
        for reason in ("", " ", "two\nlines", "x" * 501):
            assert ada.post(f"{page}/reveal", [("reason", reason)]).status == 400
        assert dead.events() == []
        answer = ada.post(f"{page}/reveal", [("reason", "ticket 17")])
        assert answer.status == 303
        (event,) = dead.events()
        assert isinstance(event, Revealed)
        assert (event.place, event.by, event.authenticated, event.reason) == (dead.place(), "ada", True, "ticket 17")
        shown = answer.headers["Location"]
        assert shows(ada, shown) and "After 10 minutes" in ada.get(shown).text
        assert not shows(eve, shown) and not shows(olga, shown) and not shows(ada, page)
        proof = shown.partition("?")[2]
        (other,) = {Place(*one.place) for one in dead.topics.read(dead.settings.dead_letter.topic)} - {dead.place()}
        assert not shows(ada, f"{page_of(other)}?{proof}")
        assert ada.get(f"{page}/value?{proof}").status == 403
        monkeypatch.setattr(signed, "REVEAL_S", 0.0)
        assert not shows(ada, shown)
        assert len(dead.events()) == 1
    assert f"contents of {dead.place()} shown to ada" in caplog.text


@pytest.mark.guarantee("R1.18")
def test_what_can_not_be_recorded_is_not_shown(dead: Scenario) -> None:
    missing = changed(dead.settings, "operations", topic=f"{dead.settings.operations.topic}.missing")
    with people(changed(missing, "kafka", request_timeout_s=3.0)) as (ada, _, _):
        refused = ada.post(f"{page_of(dead.place())}/reveal", [("reason", "ticket 17")])
        assert refused.status in (400, 503), refused.text
        assert "Location" not in refused.headers
        assert not any(re.search(secret, refused.text) for secret in SECRETS)
    assert dead.events() == []


def test_the_audit_has_who_looked_and_why(dead: Scenario) -> None:
    with people(dead.settings) as (ada, eve, _):
        for person in (ada, eve):
            assert person.post(f"{page_of(dead.place())}/reveal", [("reason", "ticket 17")]).status == 303
    dead.read_operations()
    query = "select event, job, consumer_group, done_by, authenticated, detail, dead_letter_offset from operator_event"
    assert dead.rows(f'{query} order by "offset"') == [
        ("revealed", None, dead.group, name, True, "ticket 17", dead.place().offset) for name in ("ada", "eve")
    ]


def test_nothing_is_recorded_of_what_is_not_hidden(dead: Scenario) -> None:
    with acting(dead.settings, **{**MASKED, "masks": ()}) as served:
        ada = Browser(served.port, X_Forwarded_User="ada")
        assert shows(ada, page_of(dead.place())) and "what is hidden" not in ada.get(page_of(dead.place())).text
        assert ada.post(f"{page_of(dead.place())}/reveal", [("reason", "ticket 17")]).headers["Location"] == page_of(
            dead.place()
        )
    assert dead.events() == []


def test_a_console_that_only_reads_shows_nothing_and_says_why(dead: Scenario) -> None:
    with running_console(dead.settings, **{**MASKED, "read_only": True}) as port:
        ada = Browser(port, X_Forwarded_User="ada")
        assert not shows(ada, page_of(dead.place()))
        assert "This console only reads" in ada.get(page_of(dead.place())).text


def test_without_names_that_are_checked_nothing_is_shown(dead: Scenario) -> None:
    with acting(dead.settings, masks=("* value", "* key")) as browser:
        assert "Only people whose names the console checks" in browser.get(page_of(dead.place())).text
        assert browser.post(f"{page_of(dead.place())}/reveal", [("reason", "ticket 17")]).status == 403
    assert dead.events() == []
