"""Writes RESULTS.md from the data file: one table per row, and what falls short in one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.harness.data import Data, Json
from bench.harness.row import Line, Round, Row

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
    """What came out of a line: its values, one per round, or why it failed."""

    line: Line
    values: Sequence[float]
    failure: str = ""

    @property
    def verdict(self) -> str:
        """Return `met`, `not met`, `failed`, `not measured`, or nothing where there is no target."""
        if self.failure:
            return f"failed: {self.failure}"
        if not self.values:
            return "not measured"
        least, most = self.line.least, self.line.most
        if least is None and most is None:
            return ""
        middle = median(self.values)
        return "met" if (least is None or middle >= least) and (most is None or middle <= most) else "not met"

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
    found = []
    for line in row.lines:
        values = [value for round_ in rounds if (value := line.value(round_)) is not None]
        failures = [f"round {round_.number}: {reason}" for round_ in rounds if (reason := line.failure(round_))]
        found.append(Judged(line, values, "; ".join(failures[:1])))
    return [one for one in found if one.values or one.target or one.failure]


def lines_table(found: Sequence[Judged]) -> str:
    """Return the table of a row's lines."""
    return "\n".join([TABLE, *(_table_line(one.cells) for one in found)])


def write_report(rows: Sequence[Row], data: Data) -> Path:
    """Write RESULTS.md into the folder of the data file; return its path."""
    results = [(row, judged(row, data.rounds(row.number))) for row in rows]
    parts = [HEAD, _runs(data), _shortfalls(results), *(_section(row, found, data) for row, found in results)]
    path = data.path.with_name("RESULTS.md")
    path.write_text("\n".join(parts), "utf-8")
    return path


def shown(value: float, unit: str = "") -> str:
    """Return a number with three significant digits: 55,234.1 as `55,200`, 0.98765 as `0.988`."""
    rounded = float(f"{value:.3g}")
    digits = 0 if rounded == 0 else max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{digits}f} {unit}".rstrip()


def _section(row: Row, found: Sequence[Judged], data: Data) -> str:
    ends = data.ends(row.number)
    took = f"{len(ends)} rounds of {median(end['seconds'] for end in ends) / 60:.1f} min. " if ends else ""
    noise = [f"Before round {end['round']}, {end['noise']}." for end in ends if end["noise"]]
    parts = [f"## Row {row.number}: {row.title}", " ".join([took.strip(), *noise]), lines_table(found)]
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


def _table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
