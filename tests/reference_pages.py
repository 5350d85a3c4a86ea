"""Writes tables and pictures of docs/, and the layout of the dashboard: `python -m tests.reference_pages`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from processor.protocol.record import TRANSITIONS, State, Step
from tests.evidence import ROOT
from tests.support.all_metrics import ALL_METRICS, service_of
from wait_registry.settings.names import FROM_FILE, SettingName, setting_names
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.metrics import Metric

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
        f"## {title}\n\n{_table([metric for metric in ALL_METRICS if service_of(metric) == service])}"
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
    cells = (f"`{setting.name}`", default, bounds, setting.description)
    return _cells(*cells)


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def one_panel_per_line(dashboard: dict[str, Any]) -> str:
    """Return the JSON of a dashboard, with a line for each panel, and for each other part."""
    lines = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in dashboard.items() if name != "panels"]
    panels = ",\n".join(map(json.dumps, dashboard["panels"]))
    return "{\n" + ",\n".join(lines) + f',\n"panels": [\n{panels}\n]}}\n'


def _arrows(state: State) -> list[tuple[Step, State]]:
    """Return the steps that lead from a state to another one; the next owner's and ignored ones are left out."""
    return [(step, target) for step, target in TRANSITIONS[state].items() if target not in (None, State.DROPPED)]


def with_chains(text: str) -> str:
    """Return the text of the transition table's module with its arrows in lines, each of them once."""
    left = {state: _arrows(state) for state in State}
    lines: list[str] = []
    for state in (each for each in State for _ in _arrows(each)):
        at, line = state, f"    {state.name}"
        while left[at] and len(line) < 80:
            step, at = left[at].pop(0)
            line += f" --{step.name.lower()}--> {at.name}"
        lines += [line + "\n"] if "--" in line else []
    return re.sub(r"(^    [A-Z_]+ --.+\n)+", "".join(lines), text, count=1, flags=re.MULTILINE)


def with_diagram(text: str) -> str:
    """Return the text of a page with the diagram of a record's states."""
    labels: dict[tuple[str, str], list[str]] = {}
    for state in State:
        for step, target in _arrows(state):
            labels.setdefault((state.name, target.name), []).append(step.name.lower())
    arrows = "".join(f"    {a} --> {b}: {', '.join(steps)}\n" for (a, b), steps in labels.items())
    return re.sub(r"(?<=    \[\*\] --> POLLED\n)(    [A-Z_]+ --> .+\n)*", arrows, text, count=1)


PICTURES: Final[dict[Path, Callable[[str], str]]] = {
    ROOT / "processor" / "protocol" / "record.py": with_chains,
    ROOT / "docs" / "architecture.md": with_diagram,
}
DASHBOARD: Final = ROOT / "deploy" / "grafana" / "waitreg.json"
PAGES: Final = {
    ROOT / "docs" / "configuration.md": configuration_tables,
    ROOT / "docs" / "metrics-reference.md": metrics_tables,
}

if __name__ == "__main__":
    for page, tables in PAGES.items():
        head = page.read_text("utf-8").partition(MARK)[0]
        page.write_text(head + MARK + tables(), encoding="utf-8")
    for file, with_picture in PICTURES.items():
        file.write_text(with_picture(file.read_text("utf-8")), encoding="utf-8")
    DASHBOARD.write_text(one_panel_per_line(json.loads(DASHBOARD.read_text("utf-8"))), encoding="utf-8")
