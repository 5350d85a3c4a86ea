"""What became of redriven records, and what a job does then: continue, wait, or pause. Nothing here reads anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from wait_registry.settings.redrive import RedriveSettings

# The automatic pause counts among this number of records that were sent one after another.
WINDOW: Final = 100


class Outcome(StrEnum):
    """What became of a redriven record."""

    NOT_CONSUMED = "not consumed yet"
    WAITING = "waiting"
    DEAD_AGAIN = "dead letter again"
    SETTLED = "done, discarded or in a retry topic"
    UNKNOWN = "not known yet"


class Committed(NamedTuple):
    """How far a group is in a partition.

    Attributes:
        offset: before which it consumes nothing any more.
        kept_below: the offset that another program committed. Whether the group has consumed a record before it isn't
            known.
    """

    offset: int
    kept_below: int = 0

    def consumed(self, offset: int) -> bool | None:
        """Return whether the group has consumed a record; None if that isn't known."""
        if offset >= self.offset:
            return False
        return None if offset < self.kept_below else True


def outcome(consumed: bool | None, waiting: bool, dead_again: bool, complete: bool) -> Outcome:
    """Return what became of a redriven record.

    What the tables show is so. What they don't show means something only if they are complete: a record that is
    consumed and neither registered nor a dead letter is settled, or in a retry topic.

    Args:
        consumed: whether its group has consumed it; None if that isn't known.
        waiting: whether it, or a later delivery of it, is registered.
        dead_again: whether it, or a later delivery of it, is a dead letter.
        complete: whether the tables have all that was written until its group had committed its offset, and all dead
            letters that were written until it was seen not to be registered.
    """
    if dead_again:
        return Outcome.DEAD_AGAIN
    if waiting:
        return Outcome.WAITING
    if consumed is False:
        return Outcome.NOT_CONSUMED
    return Outcome.SETTLED if consumed and complete else Outcome.UNKNOWN


class Verdict(NamedTuple):
    """Whether a job sends its next chunk; if not, it waits, or it pauses if there is a reason."""

    proceeds: bool
    reason: str = ""


PROCEED: Final = Verdict(True)
WAIT: Final = Verdict(False)


def after_comebacks(numbers: Sequence[int], above: float) -> Verdict:
    """Decide whether the job pauses, since too many records came back as dead letters.

    A record of which nothing is known yet counts as one that didn't come back, so a pause is never due to slow ones.

    Args:
        numbers: of the records that came back, ascending; consumed records are numbered in the order of sending.
        above: the share of `WINDOW` records, sent one after another, that may come back: redrive.pause_above.
    """
    found = most_within(numbers, WINDOW)
    if found <= above * WINDOW:
        return PROCEED
    came_back = f"{found} records came back as dead letters, among at most {WINDOW} that were sent one after another"
    return Verdict(False, f"{came_back}; redrive.pause_above is {above:g}")


def most_within(numbers: Sequence[int], window: int) -> int:
    """Return how many of ascending numbers are within ``window`` successive ones at most."""
    most = first = 0
    for last, number in enumerate(numbers):
        while numbers[first] <= number - window:
            first += 1
        most = max(most, last - first + 1)
    return most


def after_canary(
    counts: Mapping[Outcome, int], sent_s: float, settled_s: float | None, retries_s: float, limits: RedriveSettings
) -> Verdict:
    """Decide what a job does after its canary.

    Args:
        counts: the canary's records by outcome.
        sent_s: how long ago the last of them was sent, s.
        settled_s: for how long all have been settled or dead letters, s; None if they aren't.
        retries_s: the sum of the delays of the group's retry topics, s: a record may be in one of them so long.
        limits: the share of the records that may come back, and how long is waited.
    """
    size, most_s = sum(counts.values()), limits.canary_timeout_s + retries_s
    back = counts.get(Outcome.DEAD_AGAIN, 0)
    if back > limits.canary_above * size:
        came_back = f"{back} of {size} canary records came back as dead letters"
        return Verdict(False, f"{came_back}, redrive.canary_above is {limits.canary_above:g}")
    if settled_s is not None and settled_s >= retries_s:
        return PROCEED
    if sent_s > most_s:
        found = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count)
        return Verdict(False, f"the canary wasn't settled in {most_s:g} s: {found}")
    return WAIT
