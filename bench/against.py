"""Compares the product of this checkout with that of another one, by turns, on the same broker and Postgres.

All that measures is this checkout's: rows, contenders, the handler with its meter. Of the other checkout only the
product runs, in its own environment: `.venv/bin/waitreg` makes its topics and tables and is its processor, sink and
sweeper, as a user starts them, with WAITREG_* variables for what differs from this checkout's defaults. So the two may
differ in everything but these: the commands, the names of these settings, `wait_registry.handler`, and what is read in
Postgres (the tables `wait`, `sweep` and `sink_progress`). The handler is found by PYTHONPATH, in a folder that holds
nothing but `bench`. The wait log that row 4 reads is written once, by this checkout; both read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median

from bench.harness.play import measured, turn_folder
from bench.harness.report import shown
from bench.harness.row import HERE, Bench, Checkout, Figures, Pair, Row


def compare(row: Row, bench: Bench, other: Checkout, turns: int, at_once: bool = False) -> None:
    """Print for each pair of a row the ratio of every turn, and the median.

    A ratio above 1 means that this checkout is better: it is inverted for figures of which less is better.

    Args:
        at_once: both work at the same time, so what else the machine does disturbs both alike; else one after the
            other.
    """
    if row.warm_up is not None:
        bench.say("warming up")
        row.warm_up(_in_folder(bench, "warm-up"))
    for pair in row.pairs(bench):
        pair.prepare(_in_folder(bench, f"{row.number}-{pair.name}-prepare"))
        taken = [_both(row, pair, bench, other, turn, at_once) for turn in range(1, turns + 1)]
        for name in (*pair.gains, *pair.costs):
            ratios = [gain(name in pair.costs, ours[name], theirs[name]) for ours, theirs in taken]
            bench.say(f"row {row.number}, {pair.name}, {name}: median {median(ratios):.3f} of {_listed(ratios)}")


def gain(cost: bool, ours: float, theirs: float) -> float:
    """Return by how much ours is better: 1.1 for a tenth more of a gain, or for a cost of 1 / 1.1."""
    return theirs / ours if cost else ours / theirs


def _both(row: Row, pair: Pair, bench: Bench, other: Checkout, turn: int, at_once: bool) -> tuple[Figures, Figures]:
    """Measure both checkouts, the other one first in every second turn."""

    def measure(product: Checkout) -> Figures:
        folder = f"{row.number}-{pair.name}-{turn}-{product.name}"
        return measured(pair.measure, replace(_in_folder(bench, folder), product=product))

    products = (HERE, other) if turn % 2 else (other, HERE)
    with ThreadPoolExecutor(2 if at_once else 1) as threads:
        found = dict(zip(products, threads.map(measure, products), strict=True))
    for name in (*pair.gains, *pair.costs):
        ours, theirs = found[HERE][name], found[other][name]
        ratio = gain(name in pair.costs, ours, theirs)
        texts = (f"{HERE.name} {shown(ours)}", f"{other.name} {shown(theirs)}")
        bench.say(f"row {row.number}, {pair.name}, turn {turn}, {name}: {', '.join(texts)}, ratio {ratio:.3f}")
    return found[HERE], found[other]


def _in_folder(bench: Bench, name: str) -> Bench:
    return replace(bench, directory=turn_folder(bench, name))


def _listed(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.3f}" for ratio in ratios)
