"""How calls end, what becomes of their records, and when registrations expire."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Lifetime(NamedTuple):
    """When registrations made together expire, ms since the epoch.

    By the clock that never steps, s: when they were made, when they expire, and the latest moment to call a handler for
    the first time.
    """

    expires_at_ms: int
    registered_s: float
    expires_s: float
    start_by_s: float


class Done(NamedTuple):
    """The work is done."""


class Discarded(NamedTuple):
    """The record needs no work."""

    reason: str


class Failed(NamedTuple):
    """All attempts failed.

    ``retriable`` is whether a later attempt may succeed, and ``retry_after_s`` the least pause before it that the
    handler asks for, s. ``ours`` and ``reason`` are as in `DeadLetter`.
    """

    error: BaseException
    ours: bool = False
    retriable: bool = False
    retry_after_s: float = 0
    reason: str = "failed"


Result: TypeAlias = Done | Discarded | Failed


class Retry(NamedTuple):
    """The record goes to the retry topic with this delay, s; ``ours`` is as in `DeadLetter`."""

    delay_s: int
    error: BaseException
    ours: bool = False


class DeadLetter(NamedTuple):
    """The record goes to the dead letter topic: a reason of DLQ_REASON, and the error.

    ``ours`` is whether the error's message is this system's own: a handler's message may quote the record.
    """

    reason: str
    error: BaseException | None = None
    ours: bool = False


Outcome: TypeAlias = Done | Discarded | DeadLetter | Retry


class RetryDelays(NamedTuple):
    """The delays of the retry topics, s, ascending: a record goes through each at most once, then it is dead-lettered.

    ``processor.retry.delays``
    """

    delays_s: tuple[int, ...] = ()

    def after(self, failed: Failed, came_from_s: float) -> Retry | DeadLetter:
        """Return where a failed record goes: the shortest longer delay that is long enough, else the longest.

        ``came_from_s`` is the delay of the retry topic from which it was polled, s; 0 if it was another topic.
        """
        longer = [delay_s for delay_s in self.delays_s if delay_s > came_from_s] if failed.retriable else []
        if not longer:
            return DeadLetter(failed.reason, failed.error, failed.ours)
        delay_s = next((delay_s for delay_s in longer if delay_s >= failed.retry_after_s), longer[-1])
        return Retry(delay_s, failed.error, failed.ours)
