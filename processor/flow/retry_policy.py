"""What follows when all attempts at a record in this process have failed: a retry topic, or the dead letter topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from processor.protocol.events import DeadLetter, Failed, Retry


class RetryPolicy(Protocol):
    """Decides where a failed record goes."""

    def after(self, failed: Failed, came_from_s: float) -> Retry | DeadLetter:
        """Return where it goes next.

        Args:
            failed: how its call ended.
            came_from_s: the delay of the retry topic from which it was polled, s; 0 if it was another topic.
        """


@dataclass(frozen=True, slots=True)
class Ladder:
    """Retry topics of growing delays: a record goes through each at most once, and then to the dead letter topic.

    Args:
        delays_s: of the retry topics, s; ascending.
    """

    delays_s: tuple[int, ...] = ()

    def after(self, failed: Failed, came_from_s: float) -> Retry | DeadLetter:
        """Return the shortest longer step that is long enough, else the longest; without any, the dead letter topic."""
        longer = [delay_s for delay_s in self.delays_s if delay_s > came_from_s] if failed.retriable else []
        if not longer:
            return DeadLetter(failed.reason, failed.error, failed.ours)
        delay_s = next((delay_s for delay_s in longer if delay_s >= failed.retry_after_s), longer[-1])
        return Retry(delay_s, failed.error, failed.ours)
