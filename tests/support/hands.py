"""How people use a page: by mouse, by keyboard alone, or in a browser without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

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
