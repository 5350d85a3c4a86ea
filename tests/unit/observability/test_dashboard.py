"""The Grafana dashboard queries metrics that exist, shows all of them, and is laid out as Grafana expects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.reference_pages import DASHBOARD, one_panel_per_line
from tests.support.prometheus import metric_names
from wait_registry.telemetry.metrics import all_metrics

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
        assert metric_names(target["expr"]) <= {metric.name for metric in all_metrics()}
        assert 'job=~"$job",group=~"$group|",instance=~"$instance"' in target["expr"] or "ALERTS" in target["expr"]


def test_the_lags_of_two_groups_on_one_topic_are_not_added_up() -> None:
    asked = [target["expr"] for panel in QUERIED for target in panel["targets"]]
    lags = [expression for expression in asked if "consumer_lag" in expression or "due_lag" in expression]
    assert lags and all("sum by (group" in expression for expression in lags)


def test_every_panel_has_one_line() -> None:
    assert DASHBOARD.read_text("utf-8") == one_panel_per_line(MODEL), "run `python -m tests.reference_pages`"


def test_every_metric_is_shown() -> None:
    shown = set().union(*(metric_names(target["expr"]) for panel in QUERIED for target in panel["targets"]))
    assert {metric.name for metric in all_metrics()} - shown == set()
