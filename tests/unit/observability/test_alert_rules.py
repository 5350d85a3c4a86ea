"""The alert rules rest on metrics that exist, and each says where its runbook stands."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.support.prometheus import ROOT, AlertRule, alert_rules, metric_names
from wait_registry.telemetry.metrics import all_metrics

RULES = alert_rules()
ALL = {metric.name for metric in all_metrics()}
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
