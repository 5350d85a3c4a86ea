"""docs/metrics.md says which metrics there are now, and what each is good for."""

from __future__ import annotations

from pathlib import Path

import pytest

from wait_registry.cli.metric_questions import QUESTIONS
from wait_registry.cli.metrics_page import metrics_page
from wait_registry.telemetry.metrics import all_metrics

_PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_committed_page_is_current() -> None:
    assert _PAGE.read_text("utf-8") == metrics_page(), "run `waitreg metrics --markdown > docs/metrics.md`"


@pytest.mark.parametrize("service", QUESTIONS)
def test_every_metric_answers_a_question_of_its_service(service: str) -> None:
    of_service = {metric.name for metric in all_metrics() if metric.service == service}
    asked = {metric.name for question in QUESTIONS[service] for metric in question.metrics}
    assert asked == of_service
