"""Draws plots with matplotlib: `python -m bench.plot FOLDER`, with a JSON list of plots on standard input.

Runs in the peers' environment (setup/bench_peers.sh); `bench.harness.report.curves_of` says what a plot is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]
from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]

# The same points give the same file.
STYLE: Final = {"svg.hashsalt": "wait-registry", "svg.fonttype": "none", "font.family": "sans-serif"}


def draw(plot: dict[str, Any], folder: Path) -> None:
    """Write NAME.svg: a curve per name through the medians, with a bar from the least to the most."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, points in plot["curves"].items():
        x, middle, least, most = zip(*points, strict=True)
        below = [y - low for y, low in zip(middle, least, strict=True)]
        above = [high - y for y, high in zip(middle, most, strict=True)]
        axes.errorbar(x, middle, yerr=(below, above), label=name, marker="o", capsize=4)
    axes.set(title=plot["title"], xlabel=plot["x"], ylabel=plot["y"], xscale="log")
    if plot["log_y"]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    if plot["curves"]:
        axes.legend()
    figure.savefig(folder / f"{plot['name']}.svg", metadata={"Date": None})


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        for one in json.load(sys.stdin):
            draw(one, Path(sys.argv[1]))
