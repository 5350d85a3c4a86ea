"""What is told while a run goes on: how long it has taken, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.harness.measurement import Entry, RoundEnd
from bench.harness.number import shown_duration


def seconds_of_rows(entries: Iterable[Entry], *, full: bool) -> dict[int, float]:
    """Return how long a round of each row took the last time, whatever was measured then."""
    ends = (entry for entry in entries if isinstance(entry, RoundEnd) and entry.stamp.origin.full == full)
    return {end.row: end.seconds for end in ends if end.complete}


class Progress:
    """Tells lines that begin with the elapsed and the expected time."""

    def __init__(
        self,
        seconds: Mapping[int, float],
        write: Callable[[str], None] = lambda line: print(line, flush=True),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to count.

        Args:
            seconds: what a round of a row took the last time, by the row's number.
            write: takes a line.
            clock: in seconds.
        """
        self._seconds = dict(seconds)
        self._write = write
        self._clock = clock
        self._began = clock()
        self._ahead: list[int] = []
        self._row_began = self._began

    def plan(self, rounds: Sequence[int]) -> None:
        """Say what is to be played: the row's number for each round, in order."""
        self._ahead = list(rounds)

    def begin(self) -> None:
        """The next round of the plan begins."""
        self._row_began = self._clock()

    def end(self, row: int) -> float:
        """The round of the plan that had begun is over; return how many seconds it took."""
        self._ahead.remove(row)
        taken_s = self._clock() - self._row_began
        self._seconds[row] = taken_s
        self._row_began = self._clock()
        return taken_s

    def tell(self, text: str) -> None:
        """Write a line."""
        self._write(f"[{shown_duration(self._clock() - self._began)}, {self._rest()}] {text}")

    def _rest(self) -> str:
        if not self._ahead:
            return "nothing to go"
        known = [self._seconds[row] for row in self._ahead if row in self._seconds]
        spent_s = self._clock() - self._row_began if self._ahead[0] in self._seconds else 0.0
        rest_s = max(0.0, sum(known) - spent_s)
        if not known:
            return "rest unknown"
        return f"{'about' if len(known) == len(self._ahead) else 'more than'} {shown_duration(rest_s)} to go"
