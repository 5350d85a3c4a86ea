"""A real Prometheus watches real services: every metric, panel and rule is answered; promtool accepts the rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.deploy.conftest import Observed
from tests.integration.deploy.live_system import SERVICES, STEP_S
from tests.support.all_metrics import ALL_METRICS, service_of
from tests.support.prometheus import ROOT, RULES, prometheus_tool
from tests.support.waiting import wait_until
from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.metrics import Metric

pytestmark = pytest.mark.timeout(600)

# What stays 0 in this system, and where it is made to count instead.
STILL = {
    m.PROCESSOR_UNACKNOWLEDGED: "for milliseconds only; tests/unit/deploy",
    m.PROCESSOR_OUTBOX: "for milliseconds only; tests/unit/deploy",
    m.PROCESSOR_COMMIT_LAG: "for milliseconds only; tests/unit/deploy",
    m.PROCESSOR_STALLED: "no handler blocks the loop; tests/unit/processor/test_readiness.py",
    m.PROCESSOR_CLOCK_SKEW: "one host, one clock; tests/unit/processor/test_timing.py",
    m.PROCESSOR_START_PAUSE: "few calls fail; tests/unit/processor/test_retries.py",
    m.PROCESSOR_BLOCKED_CANCELLED: "calls in threads can't be cancelled; tests/integration/processor",
    m.SINK_LAG: "the sink keeps up; tests/unit/deploy",
    m.SINK_RESTARTS: "nothing breaks; tests/unit/deploy",
    m.SINK_PASSED: "nothing is deleted; tests/integration/sink/test_dead_letters.py",
    m.SINK_STANDBY: "one sink; tests/integration/sink/test_start.py",
    m.SWEEPER_SKIPPED: "nothing is in the way; tests/unit/deploy",
    m.PROCESSOR_REFUSED: "every dead letter fits; tests/integration/processor/test_dead_lettered_records.py",
    m.REDRIVE_LONGEST_SILENCE: "no job runs; tests/integration/sweeper/test_backlog.py",
    m.SWEEPER_CONNECT_SINK: "our own sink keeps the view; deploy/prometheus/tests",
}
# What nothing exposes here: no route has a limit (tests/integration/processor/test_routes.py), no setting names a
# certificate (tests/unit/telemetry/test_certificate_ends.py).
ABSENT = (m.PROCESSOR_ROUTE_FREE_SLOTS, m.CERTIFICATE_END)
# Those of `waitreg connect watch` move in tests/integration/connect/test_command_watch.py.
OURS = [metric for metric in ALL_METRICS if service_of(metric) != "connect" and metric not in ABSENT]
# What waits for its time waits a second here, and is seldom there when the processor is asked.
EMPTY = (*(metric.name for metric in ABSENT), f" - {m.PROCESSOR_DUE_LAG.name}")
# Label values that the load must produce; of the others any value is enough.
MOVED = (
    *(f'{m.PROCESSOR_SETTLED.name}{{outcome="{outcome}"}}' for outcome in m.OUTCOMES),
    *(f'{m.PROCESSOR_HANDLER_SECONDS.name}_count{{result="{result}"}}' for result in m.RESULTS),
    *(
        f'{m.PROCESSOR_DEAD_LETTERS.name}{{reason="{reason}"}}'
        for (reason,) in m.PROCESSOR_DEAD_LETTERS.known
        if reason != "blocked"
    ),
    *(f'{m.PROCESSOR_ATTEMPTS.name}{{result="{result}"}}' for (result,) in m.PROCESSOR_ATTEMPTS.known),
    *(f'{m.SINK_RECORDS.name}{{stream="{stream}"}}' for stream in m.STREAMS),
    *(f'{m.SINK_ROWS_WRITTEN.name}{{table="{stream}"}}' for stream in m.STREAMS),
    *(f'{m.SINK_QUERY_UP.name}{{stream="{stream}"}}' for stream in m.STREAMS),
    *(f'{m.SWEEPER_SWEEPS.name}{{result="{result}"}}' for result in ("done", "partial")),
    f'{m.SWEEPER_PURGED.name}{{table="sweep"}}',
)
# The load has failed, expired and unreadable records, each of which fires at once.
FIRING = {
    "WaitregDeadLettersFailed",
    "WaitregDeadLettersExpired",
    "WaitregDeadLettersUnregistrable",
    "WaitregDeadLettersMalformed",
    "WaitregFinishedLate",
    "WaitregNewErrorClass",
    "WaitregQuarantine",
}
# On a machine that others load; it takes five minutes.
FIRING_LATER = {"WaitregRowsUnsendable"}
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "waitreg.json").read_text("utf-8"))
# No connector runs here, so the panels of Kafka Connect stay empty.
PANELS = [
    panel for panel in DASHBOARD["panels"] if panel["type"] != "row" and "waitreg_connect_" not in str(panel["targets"])
]


def sample_of(metric: Metric) -> str:
    return f"{metric.name}_count" if metric.kind == "histogram" else metric.name


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_exposes_every_metric_that_is_its_own(observed: Observed, service: str) -> None:
    lines = observed.system.exposed(service).splitlines()
    for metric in ALL_METRICS:
        if metric in ABSENT:
            continue
        if service_of(metric) in (service, ""):
            assert any(line.startswith((f"{sample_of(metric)} ", f"{sample_of(metric)}{{")) for line in lines), metric
        else:
            assert not any(line.startswith(metric.name) for line in lines), metric


@pytest.mark.parametrize("service", SERVICES)
def test_label_values_that_are_known_are_there_before_they_are_needed(observed: Observed, service: str) -> None:
    exposed = observed.system.exposed(service)
    for metric in ALL_METRICS:
        for values in metric.known if service_of(metric) == service else ():
            labels = ",".join(f'{label}="{value}"' for label, value in sorted(zip(metric.labels, values, strict=True)))
            assert f"\n{sample_of(metric)}{{{labels}}} " in exposed, (metric.name, values)


@pytest.mark.parametrize("metric", [m for m in OURS if m not in STILL], ids=lambda metric: metric.name)
def test_a_metric_moves_with_what_it_counts(observed: Observed, metric: Metric) -> None:
    _moves(observed, sample_of(metric))


@pytest.mark.parametrize("series", MOVED)
def test_a_label_value_is_counted_when_it_happens(observed: Observed, series: str) -> None:
    _moves(observed, series)


def _moves(observed: Observed, series: str) -> None:
    expression = f"max_over_time({series}[10m]) > 0"
    observed.prometheus.wait(expression, STEP_S)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_query_of_a_panel_is_answered_with_a_series(observed: Observed, panel: dict[str, Any]) -> None:
    for expression in (_chosen(target["expr"]) for target in panel["targets"]):
        if any(text in expression for text in EMPTY):
            continue
        observed.prometheus.wait(expression, STEP_S)


def _chosen(expression: str) -> str:
    """Return what Grafana sends when all jobs, groups and instances are chosen."""
    chosen = {"$job": ".+", "$group": ".+", "$instance": ".+", "$__rate_interval": "1m"}
    for variable, value in chosen.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


def test_every_rule_is_evaluated_without_an_error(observed: Observed) -> None:
    def states() -> dict[str, str]:
        return {rule["health"]: rule.get("lastError", "") for rule in observed.prometheus.rules()}

    wait_until(lambda: "unknown" not in states(), STEP_S, "the first evaluation of each")
    assert states() == {"ok": ""}
    for rule in observed.prometheus.rules():
        observed.prometheus.query(rule["query"])


def test_what_happened_fires_and_nothing_else_does(observed: Observed) -> None:
    def firing() -> set[str]:
        return {rule["name"] for rule in observed.prometheus.rules() if rule["state"] == "firing"}

    wait_until(lambda: firing() >= FIRING, STEP_S, f"the alerts {FIRING}")
    assert firing() - FIRING_LATER == FIRING
    told = [alert["annotations"] for rule in observed.prometheus.rules() for alert in rule["alerts"]]
    assert all("error expanding" not in text and "<no value>" not in text for a in told for text in a.values())


PROMETHEUS = RULES.parent


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(
        [prometheus_tool("promtool"), *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_on_its_series_and_none_on_a_healthy_system() -> None:
    promtool("test", "rules", *sorted((PROMETHEUS / "tests").glob("*.yml")))


def test_the_rules_and_the_example_configuration_are_valid() -> None:
    promtool("check", "rules", RULES)
    promtool("check", "config", PROMETHEUS / "prometheus.yml")
