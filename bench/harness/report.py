"""Writes RESULTS.md and its plots, whole, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.harness.figure_tables import contenders_table, figures_tables
from bench.harness.judgement import Judgement, judgements
from bench.harness.machine import summary
from bench.harness.markdown import table
from bench.harness.measurement import Entry, Origin
from bench.harness.number import shown, shown_duration, shown_target
from bench.harness.plot import drawn
from bench.harness.rounds import PlayedRound, rounds_of
from bench.harness.row import Row

PLOTS: Final = "plots"
REASON_CHARS: Final = 160
HOW_TO_READ: Final = """\
The ratios are the result: absolute figures drift from machine to machine, and from hour to hour on a shared one. What
is compared was measured by turns in the same minutes, on the same broker, with the same records and handler. A figure
is the median over the rounds, a ratio the median of the rounds' ratios; beside it the least and the most that a round
had. `met` and `not met` go by the median. MB are 10^6 bytes. `bench/README.md` says how it is measured, and how to
measure it yourself."""


@dataclass(frozen=True, slots=True)
class Section:
    """A row of the results: its text, what came out of its lines, and its plots by file name."""

    text: str
    judgements: Sequence[Judgement]
    plots: Mapping[str, str]


def section_of(row: Row, entries: Sequence[Entry], origin: Origin, rounds: int) -> Section:
    """Return a row's section.

    Args:
        row: the row.
        entries: of the ledger.
        origin: whose figures; no others get in.
        rounds: how many it is to have.
    """
    heading = f"## Row {row.number}: {row.title}\n\n{row.about.strip()}"
    playings = rounds_of(entries, row.number, origin)
    if not playings:
        return Section(f"{heading}\n\nnot measured\n", (), {})
    measured = [playing.as_round() for playing in playings]
    judged = judgements(row, measured)
    plots = {f"{plot.name}.svg": drawn(plot, measured) for plot in row.plots}
    parts = [
        heading,
        _notes(playings, rounds),
        lines_table(judged),
        *(f"![{plot.title}]({PLOTS}/{plot.name}.svg)" for plot in row.plots),
        figures_tables(playings),
        contenders_table(playings),
    ]
    return Section("\n\n".join(filter(None, parts)) + "\n", judged, plots)


def lines_table(judged: Sequence[Judgement]) -> str:
    """Return the table of a row's lines."""
    return table(("figure", "median", "least–most", "target", ""), [_line(one) for one in judged], right=(1, 2))


def write_report(directory: Path, rows: Sequence[Row], entries: Sequence[Entry], origin: Origin, rounds: int) -> Path:
    """Write RESULTS.md and the plots, in place of what was there; return the former's path.

    Args:
        directory: to write to.
        rows: all there are.
        entries: of the ledger.
        origin: whose figures.
        rounds: how many a row is to have.
    """
    sections = [section_of(row, entries, origin, rounds) for row in rows]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PLOTS).mkdir(exist_ok=True)
    for stale in (directory / PLOTS).glob("*.svg"):
        stale.unlink()
    for section in sections:
        for name, picture in section.plots.items():
            (directory / PLOTS / name).write_text(picture, "utf-8")
    path = directory / "RESULTS.md"
    path.write_text("\n".join([head(entries, origin, rounds), *(section.text for section in sections)]), "utf-8")
    return path


def head(entries: Sequence[Entry], origin: Origin, rounds: int) -> str:
    """Return what stands above the rows: when, on what and how it was measured, and how to read it."""
    ours = [entry for entry in entries if entry.stamp.origin == origin]
    dates = sorted(entry.stamp.date for entry in ours)
    command = "make bench FULL=1" if origin.full else "make bench"
    versions: dict[str, str] = {}
    for entry in ours:
        versions |= entry.stamp.versions
    facts = [
        ("measured", f"{dates[0]} to {dates[-1]}" if dates else "never"),
        ("commit", f"`{origin.commit}`, the last one that changed more than tests and words"),
        ("machine", origin.machine),
        ("versions", summary(versions) or "unknown"),
        ("command", f"`{command}`: {rounds} {'round' if rounds == 1 else 'rounds'} of each row, each on new servers"),
    ]
    return f"# Results\n\n{table(('', ''), facts)}\n\n{HOW_TO_READ}\n"


def _line(judged: Judgement) -> tuple[str, str, str, str, str]:
    line, spread = judged.line, judged.spread
    targets = [shown_target(line.target, line.unit)] if line.target else []
    targets += [f"aim {shown_target(line.aim, line.unit)}"] if line.aim else []
    if spread is None:
        middle, around = "–", "–"
    else:
        middle = shown(spread.median, line.unit, line.target)
        around = f"{shown(spread.least)}–{shown(spread.most)}" if spread.count > 1 else "one round"
    return line.text, middle, around, ", ".join(targets), _verdict(judged)


def _verdict(judged: Judgement) -> str:
    if judged.verdict in ("failed", "not measured"):
        return f"{judged.verdict}: {_short(judged.reason)}" if judged.reason else judged.verdict
    aim = judged.line.aim
    if aim is None or judged.spread is None:
        return judged.verdict
    return ", ".join(filter(None, [judged.verdict, f"aim {aim.verdict(judged.spread.median)}"]))


def _notes(playings: Sequence[PlayedRound], rounds: int) -> str:
    """Return what a reader must know about how the row was measured."""
    ends = [playing.end for playing in playings if playing.end is not None]
    notes = []
    if ends:
        notes.append(f"A round took {shown_duration(median(end.seconds for end in ends))}.")
    if len(ends) < rounds:
        notes.append(f"**Only {len(ends)} of {rounds} rounds were played to the end.**")
    notes += [f"The machine wasn't quiet before round {end.round}: {end.noise}." for end in ends if end.noise]
    notes += [f"Round {end.round} broke off: {_short(end.broken)}." for end in ends if end.broken]
    return " ".join(notes)


def _short(reason: str) -> str:
    first = " ".join(reason.splitlines()[0].split()) if reason else ""
    return first if len(first) <= REASON_CHARS else f"{first[:REASON_CHARS]}..."
