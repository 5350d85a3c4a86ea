"""The rounds of a row that a ledger holds: which of them count, and what they measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.harness.measurement import Entry, Origin, RoundEnd, Turn
from bench.harness.row import Figures, Round


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """One playing of one round of a row.

    Attributes:
        turns: in the order of measuring, failed attempts among them.
        end: how it ended; None when it was interrupted.
    """

    turns: Sequence[Turn]
    end: RoundEnd | None

    @property
    def entries(self) -> Sequence[Entry]:
        """Its lines in the ledger."""
        return [*self.turns, *([self.end] if self.end else [])]

    @property
    def number(self) -> int:
        """Which round of the row it is."""
        return self.entries[0].round

    @property
    def complete(self) -> bool:
        """Whether it was played to its end and nothing failed for good: it needn't be measured again."""
        return self.end is not None and self.end.complete

    @property
    def mended(self) -> Sequence[Turn]:
        """The attempts that failed and were followed by one that didn't."""
        measured = {(turn.case, turn.contender, turn.turn) for turn in self.turns if not turn.failure}
        return [turn for turn in self.turns if turn.failure and (turn.case, turn.contender, turn.turn) in measured]

    def as_round(self) -> Round:
        """Return what it measured."""
        figures: dict[tuple[str, str], list[Figures]] = {}
        last: dict[tuple[str, str, int], Turn] = {}
        for turn in self.turns:
            last[turn.case, turn.contender, turn.turn] = turn
        failures: dict[tuple[str, str], str] = {}
        for turn in last.values():
            if turn.failure:
                failures[turn.case, turn.contender] = turn.failure
            else:
                figures.setdefault((turn.case, turn.contender), []).append(turn.figures)
        return Round(self.number, figures, failures, self.end.broken if self.end else "")


def rounds_of(entries: Iterable[Entry], row: int, origin: Origin) -> list[PlayedRound]:
    """Return what counts of a row: of each round the last complete playing, or else the one that came furthest.

    Args:
        entries: of a ledger.
        row: number of the row.
        origin: only what was measured there; nothing of another commit or machine gets in.
    """
    playings: dict[tuple[int, str], list[Entry]] = {}
    for entry in entries:
        if entry.row == row and entry.stamp.origin == origin:
            playings.setdefault((entry.round, entry.stamp.run), []).append(entry)
    chosen: dict[int, PlayedRound] = {}
    for (number, _), lines in sorted(playings.items(), key=lambda item: item[0][0]):
        turns = [line for line in lines if isinstance(line, Turn)]
        end = next((line for line in lines if isinstance(line, RoundEnd)), None)
        playing = PlayedRound(turns, end)
        if number not in chosen or _rank(playing) >= _rank(chosen[number]):
            chosen[number] = playing
    return list(chosen.values())


def complete_rounds(entries: Iterable[Entry], row: int, origin: Origin) -> set[int]:
    """Return the numbers of a row's rounds that needn't be measured again."""
    return {playing.number for playing in rounds_of(entries, row, origin) if playing.complete}


def _rank(playing: PlayedRound) -> int:
    return 2 if playing.complete else int(playing.end is not None)
