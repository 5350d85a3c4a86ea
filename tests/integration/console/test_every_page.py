"""Every page of the console in a real browser: by its policy, for everybody, on any screen, without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

from console.pages.routes import ROUTES
from tests.integration.console.addresses import ADDRESSES, PAGES, QUESTIONS
from tests.integration.console.conftest import Visitor
from tests.support.browser import Visit

# WCAG 2.2 AA, and what axe's authors hold for good practice.
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# A phone, and a wide screen at 400 %.
_NARROW: ViewportSize = {"width": 320, "height": 640}


def test_each_route_has_its_addresses_here() -> None:
    assert sorted(ADDRESSES) == sorted(route.path for route in ROUTES)


@pytest.fixture
def window(visit: Visitor) -> Iterator[Visit]:
    """A window in which nothing went wrong when the test ends."""
    opened = visit()
    yield opened
    assert opened.problems() == []


@pytest.mark.parametrize("address", PAGES)
def test_a_page_breaks_no_rule_of_a_browser_and_none_of_axe(window: Visit, address: str) -> None:
    page = window.open(address)
    assert page.title().endswith(" · wait-registry")
    assert page.locator("h1").count() == 1
    _fits(page, _RULES)
    # Another theme has other colors, and nothing else.
    page.emulate_media(color_scheme="dark")
    _fits(page, ["color-contrast"])
    page.set_viewport_size(_NARROW)
    assert _width(page) <= _NARROW["width"]


def test_no_question_breaks_a_rule_of_a_browser(visit: Visitor) -> None:
    window = visit(viewport=_NARROW)
    for address in QUESTIONS:
        page = window.open(address)
        assert window.problems() == [], address
        assert _width(page) <= _NARROW["width"], address


def _width(page: Page) -> int:
    """Return the width of the page, of which a part may be outside of the window."""
    return int(page.evaluate("document.documentElement.scrollWidth"))


def _fits(page: Page, rules: list[str]) -> None:
    found = Axe().run(page, options={"runOnly": rules})
    assert found.violations_count == 0, found.generate_report()
