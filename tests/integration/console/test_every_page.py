"""Every page of the console in a real browser: by its policy, for everybody, on any screen, without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.pages.routes import ROUTES
from tests.integration.console.addresses import ADDRESSES, PAGES, QUESTIONS
from tests.integration.console.conftest import Visitor
from tests.support.accessibility import NARROW, require_accessible, require_narrow
from tests.support.browser import Visit


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
    require_accessible(page)


def test_no_question_breaks_a_rule_of_a_browser(visit: Visitor) -> None:
    window = visit(viewport=NARROW)
    for address in QUESTIONS:
        page = window.open(address)
        assert window.problems() == [], address
        require_narrow(page)
