"""How fast somebody who moves in steps is once warm. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """What was seen at a moment: how many records were done, and the CPU time used until then, s."""

    at_s: float
    records: int
    cpu_s: float = 0.0


class Pace(NamedTuple):
    """The work between two steps."""

    records: int
    seconds: float
    cpu_s: float

    @property
    def records_per_s(self) -> float:
        """Records in a second."""
        return self.records / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        """CPU time of a record, microseconds."""
        return self.cpu_s / self.records * 1e6


def stretch(steps: Sequence[Step], first: int, last: int) -> tuple[Step, Step]:
    """Return the first step at or beyond one record, and the last step at or before another.

    Steps are large (a batch each), so the stretch that is measured lies within what is asked for. Where fewer than two
    steps lie there (in a smoke of a few records), it is all that was seen.

    Raises:
        ValueError: nothing moved at all.
    """
    within = [step for step in steps if first <= step.records <= last]
    chosen = within if len(within) >= 2 else list(steps)
    if len(chosen) < 2 or chosen[-1].at_s <= chosen[0].at_s:
        raise ValueError(f"saw {len(steps)} steps, expected two at least")
    return chosen[0], chosen[-1]


def pace(steps: Sequence[Step], first: int, last: int) -> Pace:
    """Return the pace of a `stretch`; raises as it does."""
    began, ended = stretch(steps, first, last)
    return Pace(ended.records - began.records, ended.at_s - began.at_s, ended.cpu_s - began.cpu_s)


def warm(records: int, share: float = 0.4) -> int:
    """Return from which record on a contender counts as warm.

    The sink begins with batches of 2,000 records and doubles them; compilers need some seconds of real work.
    """
    return round(records * share)
