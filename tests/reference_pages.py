"""Writes the tables of two pages in docs/ and the layout of the dashboard: `python -m tests.reference_pages`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from tests.evidence import ROOT
from wait_registry.settings.names import FROM_FILE, SettingName, setting_names
from wait_registry.settings.root import Settings
from wait_registry.telemetry.metrics import Metric, all_metrics

_TABLE_HEAD = "| setting | default | type and bounds | what it is |\n|---|---|---|---|"
_TITLES: Final = {
    "": "All services",
    "processor": "Processor",
    "sink": "Sink",
    "sweeper": "Sweeper",
    "connect": "Kafka Connect (`waitreg connect watch`)",
}

MARK: Final = "<!-- `python -m tests.reference_pages` writes what follows; tests compare. -->\n\n"


def metrics_tables() -> str:
    """Return the tables of the page, a section for each service."""
    sections = [
        f"## {title}\n\n{_table([metric for metric in all_metrics() if metric.service == service])}"
        for service, title in _TITLES.items()
    ]
    return "\n".join(sections)


def _table(metrics: Sequence[Metric]) -> str:
    rows = "\n".join(_cells(f"`{m.name}`", m.kind, _labels(m), m.help) for m in metrics)
    return f"| metric | kind | labels | meaning |\n|---|---|---|---|\n{rows}\n"


def _labels(metric: Metric) -> str:
    if not metric.known:
        return ", ".join(f"`{label}`: any" for label in metric.labels)
    values = zip(*metric.known, strict=True)
    return "; ".join(
        f"`{label}`: {', '.join(dict.fromkeys(found))}" for label, found in zip(metric.labels, values, strict=True)
    )


def configuration_tables() -> str:
    """Return the tables of the page, a section for each of the settings."""
    parts = []
    for section, settings in groupby(setting_names().values(), key=lambda setting: setting.name.partition(".")[0]):
        title = (Settings.model_fields[section].annotation.__doc__ or "").splitlines()[0].replace("``", "`")
        rows = "\n".join(map(_setting, settings))
        parts.append(f"## {section}\n\n{title}\n\n{_TABLE_HEAD}\n{rows}\n")
    return "\n".join(parts)


def _setting(setting: SettingName) -> str:
    default = f"`{setting.default}`" if setting.default else ""
    from_file = "*file*" if setting.name in FROM_FILE else ""
    bounds = ", ".join(filter(None, (setting.kind, setting.bounds, from_file)))
    cells = (f"`{setting.name}`", default, bounds, setting.field.description or "")
    return _cells(*cells)


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def one_panel_per_line(dashboard: dict[str, Any]) -> str:
    """Return the JSON of a dashboard, with a line for each panel, and for each other part."""
    lines = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in dashboard.items() if name != "panels"]
    panels = ",\n".join(map(json.dumps, dashboard["panels"]))
    return "{\n" + ",\n".join(lines) + f',\n"panels": [\n{panels}\n]}}\n'


DASHBOARD: Final = ROOT / "deploy" / "grafana" / "waitreg.json"
PAGES: Final = {
    ROOT / "docs" / "configuration.md": configuration_tables,
    ROOT / "docs" / "metrics-reference.md": metrics_tables,
}

if __name__ == "__main__":
    for page, tables in PAGES.items():
        head = page.read_text("utf-8").partition(MARK)[0]
        page.write_text(head + MARK + tables(), encoding="utf-8")
    DASHBOARD.write_text(one_panel_per_line(json.loads(DASHBOARD.read_text("utf-8"))), encoding="utf-8")
