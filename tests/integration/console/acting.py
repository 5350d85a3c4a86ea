"""What a browser without JavaScript does with the console: it gets pages, follows links and sends forms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from tests.support.console import Answer, ask, running_console
from tests.support.waiting import wait_until
from wait_registry.records.operation import Kind
from wait_registry.settings.console import Authentication
from wait_registry.settings.tree import Settings

OWN_PAGE = {"Sec_Fetch_Site": "same-origin"}
BY_PROXY = {"authentication": Authentication.PROXY, "proxies": ("127.0.0.0/8",), "read_only": False}


class Browser:
    """One person's browser; the headers are those that a proxy adds."""

    def __init__(self, port: int, **headers: str) -> None:
        self.port = port
        self.headers = headers

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        """Send a request with exactly these headers and those of the proxy."""
        return ask(self.port, path, method, body, **{**self.headers, **headers})

    def get(self, path: str, *pairs: tuple[str, str]) -> Answer:
        """Return a page."""
        return self.ask("GET", f"{path}?{urlencode(pairs)}" if pairs else path)

    def answers(self) -> bool:
        """Return whether the console answers."""
        try:
            return self.get("/help").status == 200
        except OSError:
            return False

    def post(self, path: str, fields: Sequence[tuple[str, str]] = (), **headers: str) -> Answer:
        """Send a form of the console's own page."""
        form = {"Content_Type": "application/x-www-form-urlencoded", **(headers or OWN_PAGE)}
        return self.ask("POST", path, urlencode(fields), **form)

    def put(self, path: str, value: bytes = b"", own: Mapping[str, str] = OWN_PAGE, /, **head: Any) -> Answer:
        """Send an edited record as the console's own page does.

        Args:
            path: where to.
            value: bytes of the value.
            own: the headers by which a page is known as the console's own.
            head: what differs from a record without key and headers.
        """
        given = {"key": ["null", ""], "headers": [], "value": "bytes", "allow": ["no_members"], **head}
        sent = {"Content_Type": "application/octet-stream", **own}
        return self.ask("PUT", path, json.dumps(given).encode() + b"\n" + value, **sent)

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

        return wait_until(ended, what=f"{job} is {state}")


@contextmanager
def acting(settings: Settings, **console: Any) -> Iterator[Browser]:
    """Serve a console that may act; what is yielded is a browser that shows it."""
    with running_console(settings, **{"read_only": False, **console}) as port:
        yield Browser(port)
