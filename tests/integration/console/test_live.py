"""A page refreshes itself while it is on the screen, and leaves alone what its reader uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.integration.console.conftest import Visitor
from tests.support.browser import Visit
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

EVERY_MS = 10_000
JOB = "7c1f09ab23de"
# The line with the age is replaced first, and all other parts in the same moment.
MARK = "window.before = document.getElementById('age')"
REPLACED = "!document.contains(window.before)"


@pytest.fixture
def window(visit: Visitor) -> Iterator[Visit]:
    """A window with a clock of the test's, in which nothing else went wrong when the test ends."""
    opened = visit(refresh=True)
    opened.page.clock.install()
    yield opened
    assert opened.problems() == []


@pytest.fixture
def state(shop: Settings) -> Iterator[Callable[[str], None]]:
    """Set the state of the job in the tables, as the sink does."""
    with Database(shop.postgres.url.get_secret_value()).connect(shop) as connection:

        def change(state: str) -> None:
            connection.execute("update operation set state = %s where job = %s", (state, JOB))

        yield change
        change("finished")


def after_a_refresh(page: Page) -> None:
    """Let ten seconds pass, and wait until the page was refreshed."""
    page.evaluate(MARK)
    page.clock.run_for(EVERY_MS)
    # Playwright's own way to wait for this would break the page's policy: it evaluates a string.
    wait_until(lambda: page.evaluate(REPLACED), what="the page is refreshed")


@pytest.mark.parametrize("address", ["/jobs", f"/jobs/{JOB}"])
def test_a_page_shows_what_changed(window: Visit, state: Callable[[str], None], address: str) -> None:
    page = window.open(address)
    expect(page.locator("main")).not_to_contain_text("cancelled")
    for seen in ("running", "cancelled"):
        state(seen)
        after_a_refresh(page)
        expect(page.locator("main")).to_contain_text(seen)


@pytest.mark.parametrize("address", ["/", "/dead-letters", "/dead-letters?by=none", "/system"])
def test_a_refreshed_page_is_the_page(window: Visit, address: str) -> None:
    page = window.open(address)
    before = page.locator("main").inner_text().split("\n")[0], page.locator("main section, main table").count()
    after_a_refresh(page)
    assert before == (
        page.locator("main").inner_text().split("\n")[0],
        page.locator("main section, main table").count(),
    )


def test_the_page_of_a_job_shows_one_state_in_all_its_parts(window: Visit, state: Callable[[str], None]) -> None:
    state("running")
    page = window.open(f"/jobs/{JOB}")
    main = page.locator("main")
    expect(main).not_to_contain_text("Paused by")
    state("paused")
    after_a_refresh(page)
    expect(main).to_contain_text("Paused by anna")
    state("finished")
    after_a_refresh(page)
    expect(main).not_to_contain_text("Paused by")


def test_what_has_the_focus_stays(window: Visit, state: Callable[[str], None]) -> None:
    page = window.open("/jobs")
    link = page.get_by_role("link", name=JOB)
    link.focus()
    state("paused")
    after_a_refresh(page)
    expect(link).to_be_focused()
    page.get_by_role("link", name="Skip to the content").focus()
    state("cancelled")
    after_a_refresh(page)
    expect(page.locator("main")).to_contain_text("cancelled")


def test_what_is_selected_or_under_the_pointer_stays(window: Visit, state: Callable[[str], None]) -> None:
    page = window.open("/jobs")
    page.evaluate("window.getSelection().selectAllChildren(document.querySelector('tbody td'))")
    state("cancelled")
    after_a_refresh(page)
    assert page.evaluate("window.getSelection().toString()").strip() != ""
    page.evaluate("window.getSelection().removeAllRanges()")
    page.get_by_role("cell", name="anna", exact=True).first.hover()
    after_a_refresh(page)
    expect(page.locator("main")).not_to_contain_text("cancelled")
    page.mouse.move(0, 0)
    after_a_refresh(page)
    expect(page.locator("main")).to_contain_text("cancelled")


def test_what_was_opened_scrolled_or_typed_stays(window: Visit) -> None:
    page = window.open("/dead-letters?by=none")
    page.get_by_label("since").fill("3d")
    page.locator(".wide").evaluate("box => box.scrollTo(300, 100)")
    after_a_refresh(page)
    expect(page.get_by_label("since")).to_have_value("3d")
    assert page.locator(".wide").evaluate("box => [box.scrollLeft, box.scrollTop]") == [300, 100]
    page = window.open("/")
    page.get_by_text("What to do").first.evaluate("summary => { summary.parentElement.open = true }")
    after_a_refresh(page)
    assert page.locator("details[open]").count() == 1


def asked(window: Visit) -> list[str]:
    """Return the list of requests that the page's scripts make from now on."""
    urls: list[str] = []
    window.page.on("request", lambda request: urls.extend([request.url] * (request.resource_type == "fetch")))
    return urls


def test_a_page_that_is_not_on_the_screen_asks_for_nothing(window: Visit) -> None:
    window.page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.away === true })")
    page = window.open("/jobs")
    page.evaluate("window.away = true")
    urls = asked(window)
    page.clock.run_for(6 * EVERY_MS)
    page.evaluate("1")
    assert urls == []
    page.evaluate("window.away = false")
    after_a_refresh(page)
    assert len(urls) == 1


def test_refreshing_can_be_switched_off(window: Visit) -> None:
    page = window.open("/jobs")
    page.get_by_label("refresh every 10 s").uncheck()
    page = window.open("/")
    expect(page.get_by_label("refresh every 10 s")).not_to_be_checked()
    urls = asked(window)
    page.clock.run_for(6 * EVERY_MS)
    page.evaluate("1")
    assert urls == []
    page.get_by_label("refresh every 10 s").check()
    after_a_refresh(page)


def test_a_page_that_can_not_be_refreshed_says_so(window: Visit) -> None:
    page = window.open("/jobs")
    page.route("**/jobs", lambda route: route.abort())
    page.clock.run_for(EVERY_MS)
    expect(page.get_by_role("status").get_by_text("couldn't be refreshed")).to_be_visible()
    assert all("Failed to" in problem for problem in window.problems())
    page.unroute("**/jobs")
    after_a_refresh(page)
    expect(page.get_by_text("couldn't be refreshed")).to_be_hidden()
