"""What a browser without JavaScript does with the console: it gets pages, follows links and sends forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.console import running_console
from tests.support.waiting import wait_until
from wait_registry.records.operation import Kind
from wait_registry.settings.console import Authentication
from wait_registry.settings.root import Settings

OWN_PAGE = {"Sec_Fetch_Site": "same-origin"}
BY_PROXY = {"authentication": Authentication.PROXY, "proxies": ("127.0.0.0/8",), "read_only": False}


class Answer(NamedTuple):
    """What the console answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return unescape(self.body.decode())

    @property
    def token(self) -> str:
        """Return the token of the form that starts what the page shows."""
        found = re.search(r'name="token" value="([^"]*)"', self.body.decode())
        assert found is not None, self.text
        return unescape(found[1])


class Browser:
    """One person's browser; the headers are those that a proxy adds."""

    def __init__(self, port: int, **headers: str) -> None:
        self.port = port
        self.headers = headers

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        """Send a request with exactly these headers and those of the proxy."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=90)
        sent = {name.replace("_", "-"): value for name, value in {**self.headers, **headers}.items()}
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return answer

    def get(self, path: str, *pairs: tuple[str, str]) -> Answer:
        """Return a page."""
        return self.ask("GET", f"{path}?{urlencode(pairs)}" if pairs else path)

    def post(self, path: str, fields: Sequence[tuple[str, str]] = (), **headers: str) -> Answer:
        """Send a form of the console's own page."""
        form = {"Content_Type": "application/x-www-form-urlencoded", **(headers or OWN_PAGE)}
        return self.ask("POST", path, urlencode(fields), **form)

    def dry_run(self, *conditions: str, kind: Kind = Kind.REDRIVE, **options: str) -> Answer:
        """Return the dry run for these conditions; all that may be allowed is separated by commas."""
        allowed = [("allow", name) for name in options.pop("allow", "no_members").split(",") if name]
        return self.get(f"/{kind}/new", *(("where", one) for one in conditions), *allowed, *options.items())

    def start(self, shown: Answer, kind: Kind = Kind.REDRIVE, **fields: str) -> str:
        """Start what a dry run shows; return the address that it leads to."""
        given = {"token": shown.token, "reason": "fixed", **fields}
        answer = self.post(f"/{kind}/new", list(given.items()))
        assert answer.status == 303, answer.text
        return answer.headers["Location"]

    def wait_state(self, job: str, state: str) -> Answer:
        """Wait until a job is in a state, and its executor in this console has ended; return its page."""

        def ended() -> Answer | None:
            page = self.get(job)
            return page if "It ran in this console" in page.text and f"State: {state}." in page.text else None

        found = wait_until(ended, what=f"{job} is {state}")
        assert found is not None
        return found


@contextmanager
def acting(settings: Settings, **console: Any) -> Iterator[Browser]:
    """Serve a console that may act; what is yielded is a browser that shows it."""
    with running_console(settings, **{"read_only": False, **console}) as port:
        yield Browser(port)
