"""Alert rules and the Grafana dashboard rest on metrics that exist; all are shown, and each alert has its runbook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.reference_pages import DASHBOARD, one_panel_per_line
from tests.support.all_metrics import ALL_METRICS
from tests.support.prometheus import ROOT, AlertRule, alert_rules, metric_names

MODEL: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
PANELS: list[dict[str, Any]] = MODEL["panels"]
QUERIED = [panel for panel in PANELS if panel["type"] != "row"]
# Grafana's own ids of units (packages/grafana-data/src/valueFormats).
UNITS = {"short", "s", "reqps", "percentunit", "bytes"}


def title(panel: dict[str, Any]) -> str:
    return str(panel["title"])


@pytest.mark.parametrize("panel", QUERIED, ids=title)
def test_a_panel_is_one_that_grafana_can_show(panel: dict[str, Any]) -> None:
    assert panel["type"] in ("timeseries", "stat")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[0]["value"] is None
    assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])
    assert panel["targets"]
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    assert panel["description"].endswith((".", "?"))
    assert all(target["legendFormat"] for target in panel["targets"])


@pytest.mark.parametrize("panel", QUERIED, ids=title)
def test_a_panel_asks_only_for_metrics_that_exist_of_what_was_chosen(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        assert metric_names(target["expr"]) <= {metric.name for metric in ALL_METRICS}
        assert 'job=~"$job",group=~"$group|",instance=~"$instance"' in target["expr"] or "ALERTS" in target["expr"]


def test_the_lags_of_two_groups_on_one_topic_are_not_added_up() -> None:
    asked = [target["expr"] for panel in QUERIED for target in panel["targets"]]
    lags = [expression for expression in asked if "consumer_lag" in expression or "due_lag" in expression]
    assert lags and all("sum by (group" in expression for expression in lags)


def test_every_panel_has_one_line() -> None:
    assert DASHBOARD.read_text("utf-8") == one_panel_per_line(MODEL), "run `python -m tests.reference_pages`"


def test_every_metric_is_shown() -> None:
    shown = set().union(*(metric_names(target["expr"]) for panel in QUERIED for target in panel["targets"]))
    assert {metric.name for metric in ALL_METRICS} - shown == set()


RULES = alert_rules()
ALL = {metric.name for metric in ALL_METRICS}
TESTS = ROOT / "deploy" / "prometheus" / "tests"


def ids(rules: Iterable[AlertRule]) -> list[str]:
    return [f"{number}-{rule.name}" for number, rule in enumerate(rules)]


@pytest.mark.parametrize("rule", RULES, ids=ids(RULES))
def test_a_rule_rests_on_metrics_that_exist_and_says_how_urgent_it_is(rule: AlertRule) -> None:
    assert metric_names(rule.text) <= ALL
    assert rule.name.startswith("Waitreg")
    assert rule.value("severity") in ("page", "ticket")
    assert rule.value("summary") or "&" in rule.value("annotations") or "*" in rule.value("annotations")


@pytest.mark.parametrize("name", sorted({rule.name for rule in RULES}))
def test_an_alert_has_its_section_in_the_runbook(name: str) -> None:
    links = {rule.value("runbook_url") for rule in RULES if rule.name == name} - {""}
    assert links == {f"docs/runbook.md#{name.lower()}"}
    headings = [line.lstrip("# ").strip() for line in _runbook().splitlines() if line.startswith("#")]
    assert name in headings, f"docs/runbook.md has no heading {name}"


def test_the_runbook_names_only_metrics_that_exist() -> None:
    assert metric_names(_runbook()) <= ALL


def _runbook() -> str:
    return (ROOT / "docs" / "runbook.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted({rule.name for rule in RULES}))
def test_an_alert_has_a_test_in_which_it_fires(name: str) -> None:
    firing = "\n".join(path.read_text("utf-8") for path in sorted(TESTS.glob("*.yml")) if path.name != "healthy.yml")
    assert f'alertname="{name}"' in firing


def test_the_healthy_system_has_every_series_that_a_rule_reads() -> None:
    """A rule that is silent because its metric is missing would prove nothing."""
    read = set().union(*(metric_names(rule.text) for rule in RULES))
    assert read <= metric_names((TESTS / "healthy.yml").read_text("utf-8"))
