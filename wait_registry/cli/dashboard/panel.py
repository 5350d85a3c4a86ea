"""A panel: what it asks and how its answer is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
GREEN: Final = "green"

Unit = Literal["short", "s", "reqps", "percentunit", "bytes"]


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression; ``legend`` names its series, with labels as ``{{label}}``."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: ``description`` says what to do about what it shows.

    ``steps`` are thresholds (from that value on, this colour; green below), ``single`` shows the last value in large
    letters instead of its course, ``words`` says values by name, ``width`` is in twenty-fourths.
    """

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: Unit = "short"
    width: int = 8
    single: bool = False
    steps: tuple[tuple[float, str], ...] = ()
    words: tuple[tuple[float, str, str], ...] = ()
    stacked: bool = False

    @property
    def height(self) -> int:
        """Grid rows that it takes."""
        return 4 if self.single else 8

    def as_json(self, number: int, x: int, y: int) -> dict[str, Any]:
        """Return it as Grafana's JSON.

        Args:
            number: its id, unique in the dashboard.
            x, y: where its upper left corner stands in the grid.
        """
        return {
            "id": number,
            "type": "stat" if self.single else "timeseries",
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(position, query) for position, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._field(), "overrides": []},
            "options": _STAT if self.single else _COURSE,
        }

    def _target(self, position: int, query: Query) -> dict[str, Any]:
        return {
            "refId": chr(ord("A") + position),
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query.expression,
            "legendFormat": query.legend,
            "instant": self.single,
            "range": not self.single,
        }

    def _field(self) -> dict[str, Any]:
        steps = [{"color": GREEN, "value": None}, *({"color": color, "value": at} for at, color in self.steps)]
        field: dict[str, Any] = {"unit": self.unit, "thresholds": {"mode": "absolute", "steps": steps}}
        if self.words:
            said = {f"{value:g}": {"text": text, "color": color} for value, text, color in self.words}
            field["mappings"] = [{"type": "value", "options": said}]
        if not self.single:
            field["color"] = {"mode": "palette-classic"}
            field["custom"] = {
                "drawStyle": "line",
                "fillOpacity": 20 if self.stacked else 5,
                "showPoints": "never",
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "line" if self.steps else "off"},
            }
        return field


_STAT: Final = {
    "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    "colorMode": "value",
    "graphMode": "none",
    "textMode": "auto",
}
_COURSE: Final = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
    "tooltip": {"mode": "multi", "sort": "desc"},
}
