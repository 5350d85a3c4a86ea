"""How long a job waits between its chunks, so that the time of the sending doesn't lower its rate."""

from __future__ import annotations


class Pace:
    """Plans when the next records are due.

    Args:
        now_s: the present moment, on a clock that never steps.
    """

    def __init__(self, now_s: float) -> None:
        self._due_s = now_s

    def pause_s(self, records: int, rate: float, now_s: float) -> float:
        """Return how long to wait after records have been sent, s. Time that was lost is never made up for.

        Args:
            records: how many.
            rate: records per second.
            now_s: the present moment.
        """
        self._due_s = max(self._due_s + records / rate, now_s)
        return self._due_s - now_s
