"""The dashboard as a whole: rows of panels, laid out, as the JSON that Grafana imports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from wait_registry.cli.dashboard.panel import DATASOURCE, Panel

COLUMNS: Final = 24


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


def dashboard_json(rows: Sequence[Row]) -> str:
    """Return the file ``deploy/grafana/waitreg.json``."""
    return orjson.dumps(dashboard(rows), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def dashboard(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the dashboard as Grafana's JSON model (schema 39: Grafana 10.4 and newer)."""
    return {
        "uid": "waitreg",
        "title": "Wait registry",
        "description": "Is it well, how far behind, what was given up. The alerts and docs/runbook.md say when to act.",
        "tags": ["wait-registry", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "templating": {"list": list(_variables())},
        "annotations": {"list": []},
        "links": [],
        "panels": list(_laid_out(rows)),
    }


def _laid_out(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        x, y, tallest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            yield panel.as_json(number, x, y)
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}
    yield _choice("job", "Job", "label_values(waitreg_ready, job)")
    yield _choice("group", "Consumer group", 'label_values(waitreg_ready{job=~"$job"}, group)')
    yield _choice("instance", "Instance", 'label_values(waitreg_ready{job=~"$job"}, instance)')


def _choice(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": ["All"], "value": ["$__all"]},
    }
