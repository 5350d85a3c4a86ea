"""The console of one test, served in a thread of the test's own process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.client import HTTPConnection
from threading import Thread
from typing import Any, NamedTuple

from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings
from waitreg.console.service import ConsoleService
from waitreg.local.ports import LOOPBACK


class Answer(NamedTuple):
    """What the console answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """Return the page, with its characters as a browser shows them."""
        return unescape(self.body.decode())

    @property
    def token(self) -> str:
        """Return the token of the form that starts what the page shows."""
        found = re.search(r'name="token" value="([^"]*)"', self.body.decode())
        assert found is not None, self.text
        return unescape(found[1])

    def links(self, pattern: str) -> list[str]:
        """Return the addresses on the page that match."""
        found = re.findall(r'href="([^"]*)"', self.body.decode())
        return [unescape(link) for link in found if re.search(pattern, link)]


def ask(port: int, path: str, method: str = "GET", body: str | bytes | None = None, **headers: str) -> Answer:
    """Send a request to a console on this host, and return its answer; underscores in names of headers are hyphens."""
    connection = HTTPConnection(LOOPBACK, port, timeout=90)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    answer = Answer(response.status, dict(response.getheaders()), response.read())
    connection.close()
    return answer


@contextmanager
def running_console(settings: Settings, **console: Any) -> Iterator[int]:
    """Serve the console on a free port until the end of the block.

    Args:
        settings: where Postgres is.
        console: settings of the section `console` that differ.

    Yields:
        The port on loopback.
    """
    settings = changed(settings, "console", port=0, **console)
    service = ConsoleService(settings)
    thread = Thread(target=service.run, daemon=True)
    thread.start()
    wait_until(lambda: service.port != 0, what="the console listens")
    try:
        yield service.port
    finally:
        service.request_stop()
        thread.join(30)
    assert not thread.is_alive()
