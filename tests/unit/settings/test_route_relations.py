"""Contradictions among routes, topics and handlers are named, with the route and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.route_relations import route_problems
from wait_registry.settings.routes import Route, RouteMatch

EXPRESS = {"header": "shipping", "value": "express"}
SHIP = {"match": EXPRESS, "handler": "shop:ship"}
ORDERS = {"match": {"topic": "orders"}, "handler": "shop:order"}
REFUNDS = {"match": {"topic": "refunds"}, "handler": "shop:refund"}
REST = {"handler": "shop:rest"}


def problems(routes: list[dict[str, Any]], handler: str = "shop:handle") -> list[str]:
    values = {"topics": ("orders", "refunds"), "routes": routes, "handler": handler}
    return [problem.message for problem in route_problems(ProcessorSettings.model_validate(values))]


@pytest.mark.parametrize(
    ("routes", "handler"),
    [
        ([], "shop:handle"),
        ([SHIP, ORDERS], "shop:handle"),
        ([SHIP, REST], ""),
        ([SHIP, ORDERS, REFUNDS], ""),
        ([{**SHIP, "max_in_flight": 40}, {**REST, "max_in_flight": 40}], ""),
    ],
)
def test_routes_that_lead_each_record_to_a_handler(routes: list[dict[str, Any]], handler: str) -> None:
    assert problems(routes, handler) == []


@pytest.mark.parametrize(
    ("routes", "handler", "message"),
    [
        ([], "", "processor.handler isn't set; the processor needs it"),
        ([SHIP, {"match": {"topic": "orders"}}], "shop:handle", r"processor.routes[1] has no handler"),
        (
            [{"match": {"topic": "bills"}, **REST}],
            "shop:handle",
            "match.topic is 'bills', which isn't in processor.top",
        ),
        ([{"match": {"header": "a"}, **REST}], "shop:handle", "processor.routes[0].match.header is set without"),
        ([{"match": {"value": "a"}, **REST}, SHIP], "", "processor.routes[0].match.value is set without"),
        ([REST, SHIP], "", "no record takes processor.routes[1], because processor.routes[0] matches all of its"),
        (
            [ORDERS, {**SHIP, "match": {**EXPRESS, "topic": "orders"}}],
            "shop:handle",
            "no record takes processor.routes[1]",
        ),
        ([SHIP, ORDERS], "", "records of refunds may take none of processor.routes: set it, or add a last route"),
        ([SHIP, REST], "shop:handle", "processor.handler is never called, because each record takes one of"),
    ],
)
def test_what_is_wrong_with_routes(routes: list[dict[str, Any]], handler: str, message: str) -> None:
    assert [message in found for found in problems(routes, handler)][:1] == [True]


ROUTES = (Route(match=RouteMatch(topic="orders", **EXPRESS), handler="shop:ship", max_in_flight=5),)


def test_routes_are_read_from_a_file_and_from_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "waitreg.toml"
    file.write_text(
        """
        [[processor.routes]]
        match = { topic = "orders", header = "shipping", value = "express" }
        handler = "shop:ship"
        max_in_flight = 5
        """
    )
    assert load_settings(config_file=file, env={}).processor.routes == ROUTES
    text = orjson.dumps([route.model_dump() for route in ROUTES]).decode()
    assert load_settings(env={"WAITREG_PROCESSOR__ROUTES": text}).processor.routes == ROUTES


@pytest.mark.parametrize("route", [{"max_in_flight": 0}, {"handle": "shop:ship"}, {"match": {"topics": "orders"}}])
def test_a_route_with_a_wrong_key_or_value_is_refused(route: dict[str, Any]) -> None:
    text = orjson.dumps([route]).decode()
    with pytest.raises(ConfigurationError, match=r"processor.routes is \[.* allowed: list of table"):
        load_settings(env={"WAITREG_PROCESSOR__ROUTES": text})
