"""The keys of the console, and that a keyboard alone, or a browser without scripts, leads to a dead letter and back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.integration.console.conftest import Visitor
from tests.support.browser import Visit
from tests.support.console import running_console
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

LIST = "/dead-letters?where=error%3DRefused*&by=none"
ROW = "tbody tr:focus"


@pytest.fixture
def acting(browser: Browser, shop: Settings) -> Iterator[Visit]:
    """A window of a console that may act."""
    with running_console(shop, read_only=False) as port:
        context = browser.new_context()
        yield Visit(context, f"http://127.0.0.1:{port}")
        context.close()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_rows_are_gone_through_and_opened(window: Visit) -> None:
    page = window.open(LIST)
    places = page.locator("tbody tr td:first-child").all_inner_texts()
    press(page, "j")
    expect(page.locator(ROW)).to_contain_text(places[0])
    press(page, "j", "j", "k")
    expect(page.locator(ROW)).to_contain_text(places[1])
    press(page, "k", "k")
    expect(page.locator(ROW)).to_contain_text(places[0])
    press(page, "j", "Enter")
    expect(page.locator("h1")).to_have_text(f"Dead letter {places[1]}")


def test_a_row_of_counts_opens_its_list(window: Visit) -> None:
    page = window.open("/dead-letters")
    press(page, "j", "Enter")
    expect(page).to_have_url(re.compile("by=none"))


def test_the_dead_letters_of_the_last_list_follow_one_another(window: Visit) -> None:
    page = window.open(LIST)
    places = page.locator("tbody tr td:first-child").all_inner_texts()
    press(page, "j", "Enter")
    expect(page.locator("h1")).to_have_text(f"Dead letter {places[0]}")
    press(page, "]")
    expect(page.locator("h1")).to_have_text(f"Dead letter {places[1]}")
    press(page, "]")
    expect(page.locator("h1")).to_have_text(f"Dead letter {places[2]}")
    press(page, "[")
    expect(page.locator("h1")).to_have_text(f"Dead letter {places[1]}")


@pytest.mark.parametrize(
    ("letter", "title"),
    [
        ("n", "Now"),
        ("i", "Instances"),
        ("d", "Dead letters"),
        ("j", "Jobs"),
        ("r", "Record"),
        ("t", "Timeline"),
        ("s", "System"),
        ("h", "Help"),
    ],
)
def test_g_and_a_letter_go_to_a_page(window: Visit, letter: str, title: str) -> None:
    page = window.open("/questions/sink_freshness")
    press(page, "g", letter)
    expect(page.locator("h1")).to_have_text(title)


def test_a_slash_leads_to_the_form_where_keys_are_letters(window: Visit) -> None:
    page = window.open("/dead-letters?by=none&where=")
    press(page, "/")
    page.keyboard.type("gj?[x")
    expect(page.get_by_label("condition").first).to_have_value("gj?[x")
    expect(page.locator("h1")).to_have_text("Dead letters")
    expect(page.locator("dialog")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_question_mark_shows_the_keys(window: Visit, theme: str) -> None:
    page = window.open("/")
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    found = Axe().run(page, "dialog", {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
    assert found.violations_count == 0, found.generate_report()
    press(page, "j")
    expect(page.locator(ROW)).to_have_count(0)
    press(page, "Escape")
    expect(dialog).to_be_hidden()


def test_keys_can_be_switched_off_and_stay_off(window: Visit) -> None:
    page = window.open(LIST)
    page.get_by_role("checkbox", name="keys").uncheck()
    press(page, "j")
    expect(page.locator(ROW)).to_have_count(0)
    page = window.open("/jobs")
    expect(page.get_by_role("checkbox", name="keys")).not_to_be_checked()
    press(page, "g", "h")
    expect(page.locator("h1")).to_have_text("Jobs")
    page.get_by_role("checkbox", name="keys").check()
    press(page, "g", "h")
    expect(page.locator("h1")).to_have_text("Help")


@pytest.mark.parametrize("modifier", ["Control", "Alt", "Meta"])
def test_with_another_key_held_they_are_the_browsers(window: Visit, modifier: str) -> None:
    page = window.open(LIST)
    press(page, f"{modifier}+j")
    expect(page.locator(ROW)).to_have_count(0)


def test_ticked_rows_get_a_dry_run_and_nothing_is_sent(acting: Visit) -> None:
    page, posts = acting.open(LIST), []
    page.on("request", lambda request: posts.append(request.url) if request.method != "GET" else None)
    press(page, "j", "r")
    expect(page.locator("h1")).to_have_text("Dead letters")
    place = page.locator("tbody tr td:nth-child(2)").first.inner_text()
    press(page, "x", "j", "x", "x", "r")
    expect(page).to_have_url(re.compile(r"/redrive/new\?where=place%3D" + place.replace(":", "%3A") + "$"))
    assert posts == []


def test_without_scripts_there_are_no_keys_to_switch(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open("/")
    expect(page.locator("#keys")).to_be_hidden()
    expect(page.locator("dialog")).to_be_hidden()


def focused(page: Page) -> Locator:
    """Return the element that has the focus."""
    return page.locator(":focus")


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
