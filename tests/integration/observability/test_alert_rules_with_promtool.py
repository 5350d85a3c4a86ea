"""promtool, Prometheus' own checker, is content with the rules, their tests and the example configuration."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.prometheus import RULES, prometheus_tool

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
