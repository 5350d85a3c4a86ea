"""What comes out of a line: its spread over the rounds, and whether its target is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.harness.row import Line, NotMeasuredError, Round, Row
from bench.harness.spread import Spread, spread_of

# "" is a line without a target.
Verdict = Literal["met", "not met", "failed", "not measured", ""]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A line with what came out of it.

    Attributes:
        line: the line.
        spread: over the rounds that have a value; None where none has.
        verdict: `failed` when the line failed in any round; else by the median, which other rounds may yet move.
        reason: why it failed or wasn't measured; else empty.
    """

    line: Line
    spread: Spread | None
    verdict: Verdict
    reason: str = ""


def judgements(row: Row, rounds: Sequence[Round]) -> list[Judgement]:
    """Return what came out of each line of a row, in the table's order."""
    try:
        lines = row.lines(rounds) if callable(row.lines) else row.lines
    except Exception as error:  # noqa: BLE001 - the other rows still have something to say
        nothing = Line("this row's lines", lambda _: None)
        return [Judgement(nothing, None, "failed", f"{type(error).__name__}: {error}")]
    return [judged(line, rounds) for line in lines]


def judged(line: Line, rounds: Sequence[Round]) -> Judgement:
    """Return what came out of one line."""
    values: list[float] = []
    missing: list[str] = []
    failed: list[str] = []
    for round_ in rounds:
        try:
            value = line.value(round_)
        except NotMeasuredError as error:
            (failed if error.failed else missing).append(f"round {round_.number}: {error.reason}")
        except Exception as error:  # noqa: BLE001 - a line that can't be worked out is that line's failure alone
            failed.append(f"round {round_.number}: {type(error).__name__}: {error}")
        else:
            if value is not None:
                values.append(float(value))
    spread = spread_of(values) if values else None
    if failed:
        return Judgement(line, spread, "failed", failed[0])
    if spread is None:
        return Judgement(line, None, "not measured", missing[0] if missing else "")
    if line.target is None:
        return Judgement(line, spread, "")
    return Judgement(line, spread, "met" if line.target.is_met(spread.median) else "not met")
