"""Contradictions among routes, topics, handlers and alert rules are named, with what to change and no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.alerts import NOT_EVALUATED, AlertsSettings, alert_problems
from wait_registry.settings.loading import load_settings
from wait_registry.settings.masking import describe
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.routes import Route, RouteMatch, route_problems

EXPRESS = {"header": "shipping", "value": "express"}
SHIP = {"match": EXPRESS, "handler": "shop:ship"}
ORDERS = {"match": {"topic": "orders"}, "handler": "shop:order"}
REFUNDS = {"match": {"topic": "refunds"}, "handler": "shop:refund"}
REST = {"handler": "shop:rest"}


def problems(routes: list[dict[str, Any]], handler: str = "shop:handle") -> list[str]:
    values = {"topics": ("orders", "refunds"), "routes": routes, "handler": handler}
    processor = ProcessorSettings.model_validate(values)
    return [one.message for one in route_problems(processor.routes, processor.topics, processor.handler)]


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


URL = "https://hooks.example.com/services/secret"


def found_in_alerts(rules: list[dict[str, Any]], url: str | None = URL, console_url: str = "") -> list[str]:
    values = {"rule": rules, "webhook": {"url": url}, "console_url": console_url}
    return [problem.message for problem in alert_problems(AlertsSettings.model_validate(values))]


@pytest.mark.parametrize(
    ("rules", "url"),
    [
        ([], None),
        ([{"name": "a"}, {"name": "b", "above": 10, "below": 5, "for": "5m", "every": "1d"}], URL),
        ([{"name": "a", "above": 0, "below": 1}], "http://127.0.0.1:9099/hook"),
    ],
)
def test_rules_that_can_fire_and_end(rules: list[dict[str, Any]], url: str | None) -> None:
    assert found_in_alerts(rules, url, "https://console.example.com") == []


@pytest.mark.parametrize(
    ("rules", "url", "console_url", "message"),
    [
        ([{"name": "a"}], None, "", "alerts.webhook.url isn't set"),
        ([], URL, "", "without any alerts.rule"),
        ([{"name": "a"}], "hooks.example.com/secret", "", "alerts.webhook.url is no address"),
        ([{"name": "a"}], "https://", "", "alerts.webhook.url is no address"),
        ([{"name": "a"}], "ftp://hooks.example.com/secret", "", "alerts.webhook.url is no address"),
        ([{"name": "a"}], URL, "console.example.com", "alerts.console_url is no address"),
        ([{"name": "a"}, {"name": "a"}], URL, "", "several rules of alerts.rule have the name 'a'"),
        ([{"name": NOT_EVALUATED}], URL, "", "which the sweeper uses"),
        ([{"name": "a", "above": 3, "below": 5}], URL, "", "set 'below' to 4 or less"),
    ],
)
def test_a_contradiction_is_named(rules: list[dict[str, Any]], url: str | None, console_url: str, message: str) -> None:
    (found,) = found_in_alerts(rules, url, console_url)
    assert message in found
    assert "secret" not in found.replace("a secret", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"for": "0s"}, "expected a whole number and s, m, h or d"),
        ({"window": "1w"}, "expected a whole number and s, m, h or d"),
        ({"every": ""}, "expected a whole number and s, m, h or d"),
        ({"above": -1}, "greater than or equal to 0"),
        ({"name": "a\nb"}, "should match pattern"),
        ({"abov": 3}, "Extra inputs"),
        ({"hold": "5m"}, "Extra inputs"),
    ],
)
def test_a_bad_value_of_a_rule_is_refused(changes: dict[str, Any], message: str) -> None:
    variables = {"WAITREG_ALERTS__RULE": orjson.dumps([{"name": "a", **changes}]).decode()}
    with pytest.raises(ConfigurationError, match=message):
        load_settings({}, env=variables)


def test_a_file_has_a_rule_as_a_table_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "waitreg.toml"
    rule = '[[alerts.rule]]\nname = "a"\nfilter = ["group=payments", "error=*Timeout*"]\nfor = "5m"\n'
    file.write_text(f'[alerts.webhook]\nurl = "{URL}"\nform = "slack"\n{rule}')
    settings = load_settings(config_file=file, env={})
    (found,) = settings.alerts.rule
    assert (found.filter, found.hold_s, found.every_s) == (("group=payments", "error=*Timeout*"), 300, 4 * 3_600)
    shown = describe(settings)
    assert URL not in shown and "'for': '5m'" in shown
