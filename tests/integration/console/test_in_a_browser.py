"""The incident in a real browser: from the alert to dead letters that are redriven and settled, or archived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from sweeper.alerts.watch import AlertWatch
from tests.integration.console.acting import acting
from tests.integration.processor.running import RunningProcessor
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.support.browser import Visit, require_accessible
from tests.support.http_service import Answer, HttpService
from tests.support.waiting import wait_until
from wait_registry.dead_letters import outcome_reader as outcomes
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.alerts import AlertsSettings

# More steps than any page has places to go to.
_MOST_STEPS = 200


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this text or name has the focus, which has to be visible each time."""
    for _ in range(_MOST_STEPS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            continue
        style = "getComputedStyle(document.activeElement)"
        assert page.evaluate(f"{style}.outlineStyle") != "none", page.evaluate("document.activeElement.outerHTML")
        if page.evaluate("document.activeElement.textContent.trim() || document.activeElement.name") == name:
            return
    pytest.fail(f"Tab doesn't reach {name!r} on {page.url}")


class Mouse:
    """Points and clicks."""

    scripts = True

    def __init__(self, page: Page) -> None:
        self.page = page

    def follow(self, name: str) -> None:
        """Follow the first link with this text."""
        self.page.get_by_role("link", name=name, exact=True).first.click()

    def fill(self, name: str, text: str) -> None:
        """Replace what a field has, found by its name."""
        self.page.locator(f"[name={name}]").first.fill(text)

    def press(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name, exact=True).click()


class NoScripts(Mouse):
    """Points and clicks in a browser that runs no scripts."""

    scripts = False


class Keyboard(Mouse):
    """Has no mouse."""

    def follow(self, name: str) -> None:
        """Tab to a link and press Enter."""
        tab_to(self.page, name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def fill(self, name: str, text: str) -> None:
        """Tab to a field and type."""
        tab_to(self.page, name)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def press(self, name: str) -> None:
        """Tab to a button and press Space."""
        tab_to(self.page, name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Space")


Visitor = Callable[..., Visit]


@pytest.fixture
def visit(at: Scenario, browser: Browser) -> Iterator[Visitor]:
    """Open windows at a console in which each user of this machine may act."""
    contexts = []
    with acting(at.settings) as console:

        def visit(scripts: bool = True) -> Visit:
            contexts.append(browser.new_context(java_script_enabled=scripts))
            return Visit(contexts[-1], f"http://127.0.0.1:{console.port}")

        yield visit
        for context in contexts:
            context.close()


def await_text(page: Page, *texts: str) -> None:
    """Open a page again until all of these are on it."""

    def shown() -> bool:
        page.reload()
        return all(text in page.inner_text("main") for text in texts)

    wait_until(shown, 60, f"{texts} on {page.url}", poll_s=0.2)


@contextmanager
def alerting(at: Scenario, console_url: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """Have the sweeper's rule on the group's open dead letters; yield what evaluates it and returns what it sends."""
    # In a thread of its own, as in the sweeper: the browser's has a running event loop.
    with HttpService(lambda _: Answer()) as hook, ThreadPoolExecutor(1) as thread:
        rule = {"name": "open", "filter": [f"group={at.group}", "state=open"], "window": "24h"}
        given = {"rule": [rule], "webhook": {"url": f"{hook.address}/hook"}, "console_url": console_url}
        alerts = AlertsSettings.model_validate(given)
        watch = AlertWatch(at.settings.model_copy(update={"alerts": alerts}), OpenConnections())

        def sent() -> dict[str, Any]:
            hook.calls.clear()
            thread.submit(watch.run_once).result()
            (alert,) = hook.calls[0].json()["alerts"]
            return dict(alert)

        yield sent
        watch.close()


@pytest.mark.parametrize("hand", [Mouse, Keyboard, NoScripts])
def test_from_the_alert_to_settled(
    at: Scenario, handling: Handling, visit: Visitor, hand: type[Mouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "PATIENCE_S", 1.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handling.refused = {b"value 0"}
    processor = handling.start()
    at.show_dead_letters(5)
    window = visit(hand.scripts)
    operator = hand(window.page)
    with alerting(at, window.origin) as sent:
        alert = sent()
        assert alert["status"] == "firing"
        link = alert["generatorURL"].removeprefix(window.origin)
        _redrive_and_archive(at, processor, window, operator, link)
        assert sent()["status"] == "resolved"
    assert window.problems() == []
    assert len(at.sent()) == 5


def _redrive_and_archive(at: Scenario, processor: RunningProcessor, window: Visit, operator: Mouse, link: str) -> None:
    """Do what support does, from the link of an alert on."""
    page = window.open(link)
    operator.follow(f"{at.settings.dead_letter.topic}:0:0")
    expect(page.locator("dl.facts").first).to_contain_text("ValueError")
    page.go_back()
    operator.press("Redrive …")
    expect(page.locator("h1")).to_have_text("Redrive: dry run")
    operator.fill("rate", "50")
    operator.press("Dry run with these options")
    expect(page.locator("main")).to_contain_text("at 50 per second")
    operator.fill("reason", "payments are back")
    operator.press("Redrive 5 dead letters")
    page.wait_for_url(re.compile("/jobs/"))
    await_text(page, "State: finished.")
    wait_until(lambda: processor.settled == {"done": 4, "dead_lettered": 1}, 60, "the redriven records")
    processor.stop()
    at.read_waits()
    at.read()
    await_text(page, "dead letter again\t1", "done, discarded or in a retry topic\t4")
    operator.follow("Those that are dead letters again and open")
    operator.press("Archive …")
    operator.fill("reason", "refused for good")
    operator.press("Archive 1 dead letter")
    page.wait_for_url(re.compile("/jobs/"))
    await_text(page, "State: finished.")
    at.read_operations()
    operator.follow("Jobs")
    expect(page.locator("table")).to_contain_text("payments are back")
    expect(page.locator("table")).to_contain_text("refused for good")
    page.goto(window.origin + link)
    expect(page.locator("#found")).to_contain_text("No dead letters with state=open.")


def test_with_ticks_only_what_is_ticked_is_offered(at: Scenario, visit: Visitor) -> None:
    at.show_dead_letters(3)
    page = visit().open(f"/dead-letters?where=group%3D{at.group}&by=none")
    expect(page.get_by_role("button", name="Redrive …")).to_be_visible()
    page.locator("td input").first.check()
    expect(page.get_by_role("button", name="Redrive …")).to_be_hidden()
    expect(page.get_by_role("button", name="Redrive ticked …")).to_be_visible()


def test_the_pages_that_act_break_no_rule_of_a_browser_and_none_of_axe(at: Scenario, visit: Visitor) -> None:
    at.show_dead_letters(101)
    group = f"where=group%3D{at.group}"
    for address in (
        f"/dead-letters?{group}&by=none",
        f"/dead-letters/{at.settings.dead_letter.topic}/0/0",
        f"/redrive/new?{group}",
        f"/redrive/new?{group}&allow=no_members&canary=10&rate=5",
        f"/archive/new?{group}",
        f"/restore/new?{group}&where=state%3Dopen",
    ):
        window = visit()
        require_accessible(window.open(address))
        assert window.problems() == [], address
    window = visit()
    page = window.open(f"/archive/new?{group}")
    page.locator("[name=reason]").fill("not wanted any more")
    page.locator("[name=number]").fill("101")
    page.get_by_role("button", name="Archive 101 dead letters").click()
    page.wait_for_url(re.compile("/jobs/"))
    await_text(page, "State: finished.")
    require_accessible(page)
    assert window.problems() == []
