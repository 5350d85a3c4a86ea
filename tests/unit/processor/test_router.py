"""Which route a record takes, and which routes no record can take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.dispatch.router import Router
from wait_registry.records.headers import Headers
from wait_registry.settings.routes import RouteMatch
from wait_registry.testing import record

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
