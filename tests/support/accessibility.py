"""Whether everybody can use a page: by axe in both themes, and on the screen of a phone."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

# WCAG 2.2 AA, and what axe's authors hold for good practice.
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# A phone, and a wide screen at 400 %.
NARROW: ViewportSize = {"width": 320, "height": 640}


def require_accessible(page: Page) -> None:
    """Check a page; AssertionError with what axe says."""
    size = page.viewport_size
    assert size is not None
    _fits(page, _RULES)
    # Another theme has other colors, and nothing else.
    page.emulate_media(color_scheme="dark")
    _fits(page, ["color-contrast"])
    page.set_viewport_size(NARROW)
    require_narrow(page)
    page.set_viewport_size(size)
    page.emulate_media(color_scheme="null")


def require_narrow(page: Page) -> None:
    """Check that no part of a page in a narrow window is outside of it."""
    assert int(page.evaluate("document.documentElement.scrollWidth")) <= NARROW["width"], page.url


def _fits(page: Page, rules: list[str]) -> None:
    found = Axe().run(page, options={"runOnly": rules})
    assert found.violations_count == 0, found.generate_report()
