"""Draws the plots of row 6 from a data file: `python -m bench.plot rounds.jsonl FOLDER`, with matplotlib.

Runs in the peers' environment (setup/bench_peers.sh). A point is the median over the rounds, with the least and the
most; its x is the number in the contender's name.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]
from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]

# The same points give the same file.
STYLE: Final = {"svg.hashsalt": "wait-registry", "svg.fonttype": "none", "font.family": "sans-serif"}
RATE: Final = "throughput (records/s)"
# Name, title, x, y, and the curves: their names, cases, contenders and figures.
PLOTS: Final = (
    (
        *("sink-by-partitions", "Sink by partitions of the wait topic", "partitions", RATE),
        [("sink", "sink", r"(\d+) partitions?, 200 B", "records_per_s")],
    ),
    (
        *("by-payload", "Sink and processor by size of the values", "value (B)", RATE),
        [
            ("sink", "sink", r"4 partitions, ([\d,]+) B", "records_per_s"),
            ("processor", "payload, processor", r"([\d,]+) B", "records_per_s"),
        ],
    ),
    (
        *("by-registry", "What takes how long, by rows in the registry", "rows in wait", "time (ms)"),
        [
            ("sink, 100,000 records", "registry", r"([\d,]+) rows", "sink_ms"),
            ("sweep of 100 due rows", "registry", r"([\d,]+) rows", "sweep_ms"),
            ("slowest look-up", "registry", r"([\d,]+) rows", "slowest_look_up_ms"),
            ("slowest count", "registry", r"([\d,]+) rows", "slowest_count_ms"),
        ],
    ),
)


def points(turns: Sequence[Mapping[str, Any]], case: str, pattern: str, name: str) -> dict[int, list[float]]:
    """Return what was measured at each x."""
    found: dict[int, list[float]] = {}
    for turn in turns:
        place = re.fullmatch(pattern, turn["contender"])
        if turn["case"] == case and place and name in turn["figures"]:
            found.setdefault(int(place[1].replace(",", "")), []).append(turn["figures"][name])
    return dict(sorted(found.items()))


def main(data: Path, folder: Path) -> None:
    """Write NAME.svg for each plot."""
    lines = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    turns = [line for line in lines if line.get("row") == 6 and "figures" in line]
    for name, title, x, y, curves in PLOTS:
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.add_subplot()
        axes.set(title=title, xlabel=x, ylabel=y, xscale="log")
        for label, *place in curves:
            measured = points(turns, *place)
            middle = [median(ys) for ys in measured.values()]
            below = [median(ys) - min(ys) for ys in measured.values()]
            above = [max(ys) - median(ys) for ys in measured.values()]
            axes.errorbar([*measured], middle, yerr=(below, above), label=label, marker="o", capsize=4)
        if len(curves) > 1:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        main(Path(sys.argv[1]), Path(sys.argv[2]))
