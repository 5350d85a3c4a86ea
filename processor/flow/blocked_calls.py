"""Which call is cancelled while nearly all worker slots are held by calls that have run for long.

Blocked slots are what head-of-line blocking is with a registry: no offset waits, but no other record is called. As in
uForwarder, each cancellation takes a token that an answered call has given. So while nothing is answered, in an outage
of the called service, nothing is cancelled.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from processor.flow.running_calls import RunningCalls
from processor.protocol.events import Calls
from processor.protocol.record import RUNNING, Entry
from processor.protocol.results import Failed, Result
from wait_registry.errors import TransientError

HELD_SHARE: Final = 0.9
TOKEN_LASTS_S: Final = 300.0
_SLICE_S: Final = 1.0


class BlockedError(TransientError):
    """A call was cancelled because it held one of the worker slots that were all held for long."""


class Tokens:
    """One per answered call, for five minutes."""

    def __init__(self) -> None:
        # Of each second with answers: when it began, and how many tokens are left.
        self._slices: deque[list[float]] = deque()

    def add(self, count: int, now_s: float) -> None:
        """Note answered calls."""
        if not self._slices or now_s - self._slices[-1][0] >= _SLICE_S:
            self._forget(now_s)
            self._slices.append([now_s, 0])
        self._slices[-1][1] += count

    def take(self, now_s: float) -> bool:
        """Take a token, the oldest; return whether there was one."""
        self._forget(now_s)
        if not self._slices:
            return False
        self._slices[0][1] -= 1
        return True

    def _forget(self, now_s: float) -> None:
        while self._slices and (self._slices[0][1] <= 0 or self._slices[0][0] < now_s - TOKEN_LASTS_S):
            self._slices.popleft()


class BlockedCalls:
    """Chooses the calls to cancel, one after the other.

    Args:
        after_s: age of a call that counts as blocked, s.

    Attributes:
        calls: since when each call runs.
        cancelled: how many calls have ended without an outcome because they were chosen.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self.calls = RunningCalls()
        self.cancelled = 0
        self._tokens = Tokens()
        self._chosen: Entry | None = None
        self._error: BlockedError | None = None

    def choose(self, slots: int, continuing: int, now_s: float) -> Entry | None:
        """Return the call to cancel now, the oldest one.

        None is chosen while a call continues after its cancellation: more of them would, and hold their slots.

        Args:
            slots: how many calls may run.
            continuing: how many calls have an outcome and keep their slot.
            now_s: the present moment.
        """
        if continuing or self._chosen is not None:
            return None
        old = self.calls.started_before(now_s - self._after_s)
        oldest = next((entry for entry in old if entry.state in RUNNING), None)
        if oldest is None or len(old) < HELD_SHARE * slots or not self._tokens.take(now_s):
            return None
        self._chosen = oldest
        self._error = BlockedError(
            f"its call was cancelled after more than {self._after_s:g} s: such calls held {len(old)} of {slots} "
            "worker slots"
        )
        return oldest

    def ended(self, calls: Calls, now_s: float) -> Calls:
        """Note calls that have ended; return them, with a result for the call that was chosen and has none."""
        if answered := sum(result is not None and not _may_succeed_later(result) for _, result in calls):
            self._tokens.add(answered, now_s)
        chosen = self._chosen
        if chosen is None or all(entry is not chosen for entry, _ in calls):
            return calls
        error, self._chosen, self._error = self._error, None, None
        assert error is not None
        if dict(calls)[chosen] is not None:
            return calls
        self.cancelled += 1
        blocked = Failed(error, ours=True, retriable=True, reason="blocked")
        return [(entry, blocked if entry is chosen else result) for entry, result in calls]


def _may_succeed_later(result: Result) -> bool:
    return isinstance(result, Failed) and result.retriable
