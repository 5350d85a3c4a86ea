"""A browser without a screen: cookies, redirects, forms; enough to log in to the console at an OpenID provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message
from html import unescape
from http.cookiejar import Cookie, CookieJar
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

_FORM = re.compile(r'action="([^"]+)" method="post">\s*<input type="hidden" name="prompt" value="(\w+)"')


class Shown(NamedTuple):
    """What the browser shows: the address, the status and headers of its answer, and its text."""

    url: str
    status: int
    headers: Message
    text: str


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class LoginBrowser:
    """One browser with its cookies.

    Args:
        console: the address of the console, without a slash at its end.
    """

    def __init__(self, console: str) -> None:
        self.console = console
        self.jar = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self.jar), _NoRedirect())

    def open(self, address: str, form: Mapping[str, str] | None = None, **headers: str) -> Shown:
        """Ask for an address, or send a form to it, and follow no redirect."""
        url = urljoin(self.console, address)
        data = None if form is None else urlencode(form).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            answer = self._opener.open(Request(url, data, named), timeout=30)
        except HTTPError as error:
            answer = error
        with answer:
            return Shown(url, answer.status, answer.headers, unescape(answer.read().decode()))

    def go(self, address: str, form: Mapping[str, str] | None = None, stop: str = "/nowhere") -> Shown:
        """Ask for an address and go where the answers lead, up to an address that has ``stop`` in it."""
        shown = self.open(address, form)
        while (to := _leads_to(shown)) and stop not in to:
            shown = self.open(urljoin(shown.url, to))
        return shown._replace(url=urljoin(shown.url, to)) if to else shown

    def log_in(self, name: str, address: str = "/help", stop: str = "/nowhere") -> Shown:
        """Ask for a page, log in at the provider and allow the console to know it; return what is shown then."""
        shown = self.go(address)
        # The provider asks for the login, then for consent; for less if it knows this browser.
        while form := _FORM.search(shown.text):
            action, prompt = form.groups()
            fields = {"prompt": prompt, "login": name, "password": "any"}
            shown = self.go(urljoin(shown.url, action), fields, stop)
        return shown

    def cookie(self, name: str = "waitreg") -> Cookie:
        """Return the cookie of this name."""
        return next(cookie for cookie in self.jar if cookie.name == name)

    def has_cookie(self, name: str = "waitreg") -> bool:
        """Return whether there is a cookie of this name."""
        return any(cookie.name == name for cookie in self.jar)


def _leads_to(shown: Shown) -> str:
    if shown.status in (302, 303):
        return str(shown.headers["Location"])
    return str(shown.headers.get("Refresh", "")).partition("url=")[2]
