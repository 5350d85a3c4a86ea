"""A real browser for the tests of the console: Debian's Chromium, and what went wrong on the pages that it opened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, ViewportSize, expect, sync_playwright

from tests.support.chosen_stack import not_tested
from tests.support.waiting import PATIENCE_S

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


# A machine under load draws late.
_PATIENCE_MS = 1000 * PATIENCE_S
expect.set_options(timeout=_PATIENCE_MS)
# What the policy of a page forbade; a page keeps it until it is asked.
_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""


def chromium() -> str:
    """Return the path of Chromium; without it the test is skipped, on a CI machine it fails."""
    found = shutil.which("chromium")
    if found is None:
        not_tested("chromium is not here; `make browser` gets it")
    return found


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run Chromium until the end of the block; Playwright brings none of its own.

    Playwright's loop runs in this thread until then, so no coroutine test may run within the block.
    """
    # Chromium refuses its sandbox to root, whom containers and CI machines run tests as.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        yield running
        running.close()


class Visit:
    """One page of a browser, on which nothing may go wrong that a browser notices.

    Args:
        context: the page's own window, with its theme, size and permissions.
        origin: the only one that may be asked for anything, such as ``http://127.0.0.1:8088``.
    """

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self._problems: list[str] = []
        context.set_default_timeout(_PATIENCE_MS)
        context.add_init_script(_VIOLATIONS)
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self._note(f"console: {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self._note(f"script: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self._asked(request.url))

    def open(self, address: str, status: int = 200) -> Page:
        """Open an address of the console; AssertionError if it doesn't answer with a page of this status."""
        answer = self.page.goto(f"{self.origin}{address}")
        assert answer is not None and answer.status == status, (address, answer and answer.status)
        return self.page

    def problems(self) -> list[str]:
        """Return what has gone wrong since the last time that it was asked."""
        found, self._problems = self._problems, []
        return found + [f"policy: {violation}" for violation in self.page.evaluate("window.violations || []")]

    def _dismiss(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, problem: str) -> None:
        self._problems.append(problem)

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self._note(f"foreign request: {url}")
