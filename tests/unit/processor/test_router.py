"""Which route a record takes, and the handlers of all routes: each opened once."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.handlers.routed import load_handlers
from processor.handlers.router import Router
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Discard, Record
from wait_registry.records.headers import Headers
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.routes import Route, RouteMatch
from waitreg.testing import record

ROUTES = Router(
    [
        RouteMatch(topic="orders", header="shipping", value="express"),
        RouteMatch(topic="orders"),
        RouteMatch(header="shipping", value="express"),
        RouteMatch(header="note", value=""),
    ]
)
EXPRESS: Headers = (("shipping", b"express"),)
TEXTS = st.none() | st.sampled_from(["a", "b"])
MATCHES = st.builds(
    lambda topic, header: RouteMatch(topic=topic, header=header and header[0], value=header and header[1]),
    TEXTS,
    st.none() | st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["a", "b"])),
)
HEADERS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.none() | st.sampled_from([b"a", b"b"]))).map(tuple)


@pytest.mark.parametrize(
    ("topic", "headers", "route"),
    [
        ("orders", EXPRESS, 0),
        ("orders", (), 1),
        ("orders", (("shipping", b"express"), ("shipping", b"slow")), 1),
        ("orders", (("shipping", b"slow"), ("shipping", b"express")), 0),
        ("refunds", EXPRESS, 2),
        ("refunds", (("shipping", None),), 4),
        ("refunds", (("Shipping", b"express"),), 4),
        ("refunds", (("note", b""),), 3),
        ("refunds", (("note", None),), 4),
        ("refunds", (), 4),
    ],
)
def test_the_first_route_that_matches_takes_the_record(topic: str, headers: Headers, route: int) -> None:
    assert ROUTES.route_of(record(b"", topic=topic, headers=headers)) == route


@given(MATCHES, MATCHES, st.sampled_from(["a", "b"]), HEADERS)
def test_what_a_match_covers_it_matches(wide: RouteMatch, narrow: RouteMatch, topic: str, headers: Headers) -> None:
    of_both = record(b"", topic=topic, headers=headers)
    if wide.covers(narrow) and Router([narrow]).route_of(of_both) == 0:
        assert Router([wide]).route_of(of_both) == 0


HERE = __name__


class Works:
    """Notes when it is opened and closed."""

    seen: ClassVar[list[str]] = []

    async def __aenter__(self) -> Works:
        self.seen.append("opened")
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.seen.append("closed")

    async def handle(self, record: Record) -> Discard:
        """Answer with a reason of its own."""
        return Discard("works")


class Fails(Works):
    """Can't be opened."""

    async def __aenter__(self) -> Works:
        raise ConnectionError("no pool")


def plain(record: Record) -> Discard:
    """Answer with a reason of its own, in a thread."""
    return Discard("plain")


def settings(*names: str, handler: str = "") -> ProcessorSettings:
    routes = [Route(match=RouteMatch(topic=f"topic-{n}"), handler=f"{HERE}:{name}") for n, name in enumerate(names)]
    return ProcessorSettings(routes=tuple(routes), handler=handler, max_in_flight=2)


@pytest.fixture(autouse=True)
def _unseen() -> None:
    Works.seen.clear()


def test_a_record_is_handled_by_its_route_and_shared_handlers_open_once() -> None:
    async def run() -> list[object]:
        handler = load_handlers(settings("Works", "plain", "Works", handler=f"{HERE}:plain"))
        assert handler.slots is None
        await handler.open()
        answers = [await handler.call(record(b"", topic=f"topic-{number}")) for number in range(4)]
        await handler.close()
        return [answer.reason for answer in answers if isinstance(answer, Discard)]

    assert asyncio.run(run()) == ["works", "plain", "works", "plain"]
    assert Works.seen == ["opened", "closed"]


def test_what_is_open_is_closed_if_another_handler_can_not_be_opened() -> None:
    async def run() -> None:
        await load_handlers(settings("Works", "Fails")).open()

    with pytest.raises(ConfigurationError, match=r"opening it \(__aenter__\) failed: ConnectionError: no pool"):
        asyncio.run(run())
    assert Works.seen == ["opened", "closed"]
