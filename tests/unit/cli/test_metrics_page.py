"""The metrics pages list every metric there is."""

from __future__ import annotations

from pathlib import Path

from wait_registry.cli.metrics import metrics_page
from wait_registry.telemetry.metrics import all_metrics

_PAGES = Path(__file__).parents[3] / "docs"


def test_the_reference_is_current() -> None:
    page = (_PAGES / "metrics-reference.md").read_text("utf-8")
    assert page == metrics_page(), "run `waitreg metrics --markdown > docs/metrics-reference.md`"


def test_every_metric_answers_a_question() -> None:
    questions = (_PAGES / "metrics.md").read_text("utf-8")
    assert [metric.name for metric in all_metrics() if f"`{metric.name}`" not in questions] == []
