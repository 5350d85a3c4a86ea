"""The figures that README.md and docs/comparison.md quote are those of the last full run."""

from __future__ import annotations

import re
from statistics import median
from typing import Final, NamedTuple

import pytest

from bench.__main__ import ROWS
from bench.harness.data import Data
from bench.harness.report import judged, shown
from bench.harness.row import ROOT


class Quote(NamedTuple):
    """A line of the results that a page quotes, and the line that it is divided by, if it is."""

    row: int
    text: str
    divisor: str = ""


NONE: Final = ""
# The table "Measured" of docs/comparison.md: labels, and per cell the line that it quotes or what else it says.
TABLE: Final[tuple[tuple[str, tuple[Quote | str, ...]], ...]] = (
    (
        "calls that wait, N = 2,000: share of what N calls can do",
        (
            Quote(1, "Share of the limit, N = 2000: registry"),
            Quote(1, "Share of the limit, N = 2000: Parallel Consumer"),
            Quote(1, "Share of the limit, N = 2000: share consumer"),
        ),
    ),
    (
        "a handler that does nothing, records/s",
        (Quote(2, "Registry"), Quote(2, "Parallel Consumer, UNORDERED"), Quote(2, "share consumer")),
    ),
    (
        "the same per client core, registry / Parallel Consumer",
        (Quote(2, "Registry / Parallel Consumer, by client core"), "1", NONE),
    ),
    (
        "a handler that does nothing, in key order, records/s",
        (Quote(2, "registry, off, by key"), Quote(2, "Parallel Consumer, KEY"), "no order"),
    ),
    (
        "the same per client core, registry / Parallel Consumer",
        (Quote(2, "Registry, off, by key / Parallel Consumer, KEY, by client core"), "1", NONE),
    ),
    (
        "from publication to the start of the handler, median",
        (Quote(3, "Publish to start of the handler, median"), Quote(3, "The same, median: Parallel Consumer"), NONE),
    ),
    (
        "memory at N = 2,000",
        (Quote(3, "Memory at N = 2,000: registry"), Quote(3, "Memory at N = 2,000: Parallel Consumer"), NONE),
    ),
    (
        "CPU at 100 records/s, of a core",
        (Quote(3, "CPU at 100 records/s, of a core"), Quote(3, "The same: Parallel Consumer"), NONE),
    ),
)
PROSE: Final = (
    (
        "README.md",
        "one core handles {} times as many records per second as with Parallel Consumer",
        Quote(2, "Registry / Parallel Consumer, by client core"),
    ),
    (
        "docs/comparison.md",
        "wait-registry writes each record twice ({} times its bytes)",
        Quote(7, "Registry: wait record and tombstone", "A record in the input topic"),
    ),
)


@pytest.fixture(scope="module")
def data() -> Data:
    """The figures of the last full run."""
    return Data.read(ROOT / "bench" / "rounds.jsonl")


def test_the_comparison_quotes_the_results(data: Data) -> None:
    section = (ROOT / "docs" / "comparison.md").read_text("utf-8").partition("\n## Measured\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    found = [tuple(cell.strip(" *") for cell in row) for row in rows]
    assert found == [(label, *(cell_of(one, data) for one in cells)) for label, cells in TABLE]


@pytest.mark.parametrize(("page", "sentence", "quote"), PROSE, ids=[page for page, *_ in PROSE])
def test_a_sentence_quotes_the_results(page: str, sentence: str, quote: Quote, data: Data) -> None:
    text = re.sub(r"\s+", " ", (ROOT / page).read_text("utf-8"))
    assert sentence.format(cell_of(quote, data)) in text


def cell_of(quoted: Quote | str, data: Data) -> str:
    """Return what a page must say: as RESULTS.md does, but without the unit that a label names."""
    if isinstance(quoted, str):
        return quoted
    value, unit = measured(quoted.row, quoted.text, data)
    if quoted.divisor and value is not None:
        divisor, unit = measured(quoted.row, quoted.divisor, data)[0], ""
        value = value / divisor if divisor else None
    return "–" if value is None else shown(value, unit).removesuffix(" records/s")


def measured(row: int, text: str, data: Data) -> tuple[float | None, str]:
    """Return the median of a line, None where the last full run has none, and the line's unit."""
    (line,) = (line for line in ROWS[row].lines if line.text == text)
    values = [value for one in judged(ROWS[row], data.rounds(row)) if one.line == line for value in one.values]
    return (median(values) if values else None), line.unit
