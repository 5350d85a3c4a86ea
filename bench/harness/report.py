"""Writes RESULTS.md and its plots from the data file: one table per row, and what falls short in one table."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.harness.data import Data, Json
from bench.harness.row import ROOT, Bench, Line, MissingFigureError, Plot, Round, Row
from bench.peers import peers_python

HEAD: Final = """\
# Results

What this project costs and how fast it is, compared with what users would pick instead. [README.md](README.md) says
what each row measures, how, and how to measure it yourself. All figures of all turns are in `rounds.jsonl`.

The ratios are the result: their sides were measured by turns in the same minutes, on the same broker, with the same
records. A figure is the median over the rounds, followed by the least and the most; a ratio is that of each round.
`met` and `not met` go by the median. MB are 10^6 bytes.
"""
TABLE: Final = "| figure | median | least to most | target | verdict |\n| --- | ---: | ---: | ---: | --- |"


@dataclass(frozen=True, slots=True)
class Judged:
    """What came out of a line: its values, one per round, or the reason why it has none."""

    line: Line
    values: Sequence[float]
    reason: str = ""
    failed: bool = False

    @property
    def verdict(self) -> str:
        """Return `met`, `not met`, `failed`, `not measured`, or nothing where there is no target."""
        if self.failed:
            return f"failed: {self.reason}"
        if not self.values:
            return "not measured"
        if self.line.least is None and self.line.most is None:
            return ""
        middle = median(self.values)
        met = middle >= (self.line.least or -math.inf) and middle <= (
            math.inf if self.line.most is None else self.line.most
        )
        return "met" if met else "not met"

    @property
    def target(self) -> str:
        """Return the target with its unit."""
        bound, sign = (self.line.least, "≥") if self.line.least is not None else (self.line.most, "≤")
        return "" if bound is None else f"{sign} {bound:,.10g} {self.line.unit}".rstrip()

    @property
    def cells(self) -> list[str]:
        """Return its line of the table."""
        middle = shown(median(self.values), self.line.unit) if self.values else "–"
        spread = f"{shown(min(self.values))} to {shown(max(self.values))}" if len(self.values) > 1 else ""
        return [self.line.text, middle, spread, self.target, self.verdict]


def judged(row: Row, rounds: Sequence[Round]) -> list[Judged]:
    """Return what came out of a row's lines; a line without a value and without a target is skipped."""
    found = [_judged(line, rounds) for line in row.lines]
    return [one for one in found if one.values or one.target or one.failed]


def _judged(line: Line, rounds: Sequence[Round]) -> Judged:
    values: list[float] = []
    reason = ""
    for round_ in rounds:
        try:
            values.append(line.value(round_))
        except MissingFigureError as error:
            if error.failed:
                return Judged(line, values, f"round {round_.number}: {error}", failed=True)
            reason = str(error)
    return Judged(line, values, reason)


def lines_table(found: Sequence[Judged]) -> str:
    """Return the table of a row's lines."""
    return "\n".join([TABLE, *(_table_line(one.cells) for one in found)])


def write_report(rows: Sequence[Row], data: Data) -> Path:
    """Write RESULTS.md and the plots into the folder of the data file; return the former's path."""
    folder = data.path.parent
    results = [(row, judged(row, data.rounds(row.number))) for row in rows]
    parts = [HEAD, _runs(data), _shortfalls(results), *(_section(row, found, data) for row, found in results)]
    path = folder / "RESULTS.md"
    path.write_text("\n".join([*parts, _peers(rows)]), "utf-8")
    draw([curves_of(plot, data.rounds(row.number)) for row in rows for plot in row.plots], folder / "plots")
    return path


def shown(value: float, unit: str = "") -> str:
    """Return a number with three significant digits: 55,234.1 as `55,200`, 0.98765 as `0.988`."""
    rounded = float(f"{value:.3g}")
    digits = 0 if rounded == 0 else max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{digits}f} {unit}".rstrip()


def curves_of(plot: Plot, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return a plot as `bench.plot` takes it: per curve the points with median, least and most."""
    curves: dict[str, dict[float, list[float]]] = {}
    for round_ in rounds:
        for name, points in plot.curves(round_).items():
            for x, y in points:
                curves.setdefault(name, {}).setdefault(x, []).append(y)
    spreads = {
        name: [(x, median(ys), min(ys), max(ys)) for x, ys in sorted(curve.items())] for name, curve in curves.items()
    }
    return {"name": plot.name, "title": plot.title, "x": plot.x, "y": plot.y, "log_y": plot.log_y, "curves": spreads}


def draw(plots: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw plots with matplotlib, which only the peers' environment has."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [peers_python(), "-m", "bench.plot", str(folder)]
    subprocess.run(command, cwd=ROOT, input=json.dumps(plots), text=True, check=True)


def _section(row: Row, found: Sequence[Judged], data: Data) -> str:
    ends = data.ends(row.number)
    took = f"{len(ends)} rounds of {median(end['seconds'] for end in ends) / 60:.1f} min. " if ends else ""
    noise = [f"Before round {end['round']}, {end['noise']}." for end in ends if end["noise"]]
    plots = "\n".join(f"![{plot.title}](plots/{plot.name}.svg)" for plot in row.plots)
    parts = [f"## Row {row.number}: {row.title}", " ".join([took.strip(), *noise]), lines_table(found), plots]
    return "\n\n".join(filter(None, parts)) + "\n"


def _runs(data: Data) -> str:
    runs: dict[str, list[int]] = {}
    for row in sorted({line["row"] for line in data.lines if "row" in line}):
        for run in data.runs(row):
            runs.setdefault(_run_text(run), []).append(row)
    return "\n".join(f"- Rows {', '.join(map(str, rows))}: {text}" for text, rows in runs.items()) + "\n"


def _run_text(run: Json) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return f"{run['date'][:10]}, commit `{run['commit']}`, `{run['command']}`, {run['machine']}; {versions}."


def _shortfalls(results: Sequence[tuple[Row, Sequence[Judged]]]) -> str:
    lines = [
        _table_line([str(row.number), *one.cells[:2], one.target, f"[why]({one.line.why})" if one.line.why else ""])
        for row, found in results
        for one in found
        if one.target and one.verdict != "met"
    ]
    head = "## What falls short\n\n| row | figure | median | target | |\n| ---: | --- | ---: | ---: | --- |"
    return "\n".join([head, *lines]) + "\n"


def _peers(rows: Sequence[Row]) -> str:
    nowhere = Bench("", "", Path(), full=True)
    contenders = [one for row in rows for case in row.cases(nowhere) for one in case.contenders if one.lacks]
    lines = {one.lacks: _table_line([one.name, one.version, one.lacks]) for one in reversed(contenders)}
    head = "## What the others don't do\n\n| contender | version | does not do |\n| --- | --- | --- |"
    return "\n".join([head, *reversed(lines.values())]) + "\n"


def _table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
