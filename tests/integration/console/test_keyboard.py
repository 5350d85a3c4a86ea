"""Who has only a keyboard, or no scripts, gets from the start page to a dead letter and back."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.integration.console.conftest import Visitor
from tests.support.hands import tab_to
from tests.support.waiting import wait_until


def focused(page: Page) -> Locator:
    """Return the element that has the focus."""
    return page.locator(":focus")


def test_by_keyboard_from_the_start_to_a_dead_letter_and_back(visit: Visitor) -> None:
    page = visit().open("/")
    tab_to(page, "Dead letters")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Dead letters")
    tab_to(page, "where")
    page.keyboard.type("error=Refused*")
    tab_to(page, "by")
    page.keyboard.press("Control+a")
    page.keyboard.type("none")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("where=error%3DRefused"))
    tab_to(page, "orders.dlq:1:117")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Dead letter orders.dlq:1:117")
    page.go_back()  # a key of the browser's own, which has none without a window
    expect(page.locator("h1")).to_have_text("Dead letters")
    expect(page.get_by_label("condition").first).to_have_value("error=Refused*")


def test_the_first_step_skips_the_menu(visit: Visitor) -> None:
    page = visit().open("/dead-letters")
    page.keyboard.press("Tab")
    expect(focused(page)).to_have_text("Skip to the content")
    expect(focused(page)).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(focused(page)).to_have_attribute("name", "where")


def test_a_wide_table_is_scrolled_by_keyboard(visit: Visitor) -> None:
    page = visit(viewport={"width": 700, "height": 500}).open("/dead-letters?by=none")
    table = page.get_by_role("region", name="Dead letters")
    table.focus()
    page.keyboard.press("ArrowRight")
    wait_until(lambda: table.evaluate("box => box.scrollLeft") > 0, what="the table scrolls")
    table.evaluate("box => box.scrollTop = 200")
    top = "document.querySelector('.wide').getBoundingClientRect().top"
    head = "document.querySelector('.wide th').getBoundingClientRect().top"
    assert abs(page.evaluate(f"{head} - {top}")) <= 2  # the head stays


def test_without_scripts_from_the_start_to_a_dead_letter(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open("/")
    expect(page.get_by_label("refresh every 10 s")).to_be_hidden()
    page.get_by_role("link", name="Dead letters", exact=True).click()
    page.get_by_label("condition").first.fill("error=Refused*")
    page.get_by_label("count by").fill("none")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="orders.dlq:1:117").click()
    expect(page.locator("h1")).to_have_text("Dead letter orders.dlq:1:117")
    page.get_by_text("What to do").first.click()
    expect(page.locator("details[open] p").first).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile("where=error%3DRefused"))


def test_an_address_shows_the_same_to_a_colleague(visit: Visitor) -> None:
    page = visit().open("/dead-letters")
    page.get_by_label("since").fill("365d")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="list").first.click()
    colleague = visit().page
    colleague.goto(page.url)
    assert said(colleague) == said(page)


def said(page: Page) -> str:
    """Return what the table says, with times themselves instead of how long ago they were."""
    times = "table => { for (const each of table.querySelectorAll('time')) each.textContent = each.dateTime }"
    page.locator("table").evaluate(times)
    return page.locator("table").inner_text()
