"""Every metric that a page names is exposed by a service."""

from __future__ import annotations

import re

import pytest

from tests.support.pages import pages
from wait_registry.telemetry.metrics import all_metrics

NAME = re.compile(r"\bwaitreg_(?:processor|sink|sweeper|ready|build)\w*")
NAMED = sorted({(page.name, name) for page in pages() for name in NAME.findall(page.text)})
EXPOSED = {metric.name for metric in all_metrics()} | {
    f"{metric.name}_{part}"
    for metric in all_metrics()
    if metric.kind == "histogram"
    for part in ("bucket", "sum", "count")
}


@pytest.mark.parametrize(("page", "name"), NAMED, ids=[f"{page}: {name}" for page, name in NAMED])
def test_a_service_exposes_it(page: str, name: str) -> None:
    assert name in EXPOSED
