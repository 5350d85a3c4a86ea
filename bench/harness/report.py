"""Writes RESULTS.md and its plots, whole, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from bench.harness.figure_tables import contenders_table, figures_tables
from bench.harness.judgement import Judgement, judgements
from bench.harness.machine import summary
from bench.harness.markdown import table
from bench.harness.measurement import Entry, Origin, Stamp
from bench.harness.number import shown, shown_duration, shown_target
from bench.harness.plot import drawn
from bench.harness.rounds import PlayedRound, rounds_of
from bench.harness.row import Row

PLOTS: Final = "plots"
REASON_CHARS: Final = 160
HOW_TO_READ: Final = """\
The ratios are the result: absolute figures drift from machine to machine, and from hour to hour on a shared one. What a
ratio compares was measured by turns in the same minutes, on the same broker, with the same records and handler; where a
row does otherwise, it says so. A figure is the median over the rounds, a ratio the median of the rounds' ratios; beside
it the least and the most that a round had. `met` and `not met` go by the median; what isn't met is followed by where it
is explained. MB are 10^6 bytes. `bench/README.md` says how it is measured, and how to measure it yourself."""


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
    return table(("figure", "median", "least–most", "target", "verdict"), [_line(one) for one in judged], right=(1, 2))


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
    top = head(entries, origin, rounds, unmeasured(rows, entries, origin))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PLOTS).mkdir(exist_ok=True)
    for stale in (directory / PLOTS).glob("*.svg"):
        stale.unlink()
    for section in sections:
        for name, picture in section.plots.items():
            (directory / PLOTS / name).write_text(picture, "utf-8")
    path = directory / "RESULTS.md"
    path.write_text("\n".join([top, *(section.text for section in sections)]), "utf-8")
    return path


def unmeasured(rows: Sequence[Row], entries: Sequence[Entry], origin: Origin) -> str:
    """Return which rows have no figure of this origin, in words; empty where all have."""
    numbers = [str(row.number) for row in rows if not rounds_of(entries, row.number, origin)]
    return f"row{'s' if numbers[1:] else ''} {', '.join(numbers)}" if numbers else ""


def head(entries: Sequence[Entry], origin: Origin, rounds: int, lacking: str = "") -> str:
    """Return what stands above the rows: when, on what and how it was measured, and how to read it."""
    ours = [entry.stamp for entry in entries if entry.stamp.origin == origin]
    dates = sorted(stamp.date for stamp in ours)
    command = "make bench FULL=1" if origin.full else "make bench"
    given = ", ".join(f"`{text}`" for text in dict.fromkeys(stamp.command for stamp in ours))
    facts = [
        ("measured", f"{dates[0]} to {dates[-1]}" if dates else "never"),
        ("commit", f"`{origin.commit}`, the last one that changed more than tests and words"),
        ("machine", origin.machine),
        ("versions", _versions(ours) or "unknown"),
        ("command", f"`{command}`: {rounds} {'round' if rounds == 1 else 'rounds'} of each row, each on new servers"),
        ("it was given as", given or "nothing yet"),
    ]
    if other := _other_versions(entries, ours, origin):
        facts.append(("left out", f"rounds of this commit that were measured with {other}"))
    if lacking:
        facts.append(("**not measured**", f"**{lacking}: not on this commit, machine and versions**"))
    return f"# Results\n\n{table(('', ''), facts)}\n\n{HOW_TO_READ}\n"


def _versions(stamps: Sequence[Stamp]) -> str:
    """Return each version that was seen; of what changed meanwhile, all."""
    return summary({name: " and ".join(seen) for name, seen in _seen_versions(stamps).items()})


def _other_versions(entries: Sequence[Entry], ours: Sequence[Stamp], origin: Origin) -> str:
    """Return the versions in which rounds that don't count differ from those that do."""
    others = [entry.stamp for entry in entries if replace(entry.stamp.origin, versions=origin.versions) == origin]
    known = _seen_versions(ours)
    seen = _seen_versions([stamp for stamp in others if stamp.origin != origin])
    differing = {name: [one for one in versions if one not in known.get(name, {})] for name, versions in seen.items()}
    return summary({name: " and ".join(versions) for name, versions in differing.items() if versions})


def _seen_versions(stamps: Sequence[Stamp]) -> dict[str, dict[str, None]]:
    seen: dict[str, dict[str, None]] = {}
    for stamp in stamps:
        for name, version in stamp.versions.items():
            seen.setdefault(name, {})[version] = None
    return seen


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
    missed = judged.verdict == "not met"
    parts: list[str] = [judged.verdict]
    if aim is not None and judged.spread is not None:
        reached = aim.is_met(judged.spread.median)
        parts.append(f"aim: {'met' if reached else 'missed'}")
        missed = missed or not reached
    if missed:
        parts.append(f"[why]({judged.line.why})" if judged.line.why else "not explained")
    return ", ".join(filter(None, parts))


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
    notes += [
        f"Measured at the second attempt: round {turn.round}, {turn.case}, {turn.contender}, turn {turn.turn}; the "
        f"first: {_short(turn.failure)}."
        for playing in playings
        for turn in playing.mended
    ]
    return " ".join(notes)


def _short(reason: str) -> str:
    first = " ".join(reason.splitlines()[0].split()) if reason else ""
    return first if len(first) <= REASON_CHARS else f"{first[:REASON_CHARS]}..."
