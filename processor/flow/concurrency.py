"""How many calls may run at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol


class EndedCall(NamedTuple):
    """A call that has ended with a result.

    Args:
        seconds: from its start to its end, all attempts and pauses included.
        running: how many calls ran when it had started, itself included.
        failed: whether all attempts failed, and a later one may succeed.
    """

    seconds: float
    running: int
    failed: bool


class ConcurrencyLimit(Protocol):
    """The number of worker slots."""

    @property
    def learns(self) -> bool:
        """Whether it depends on the calls, so that it needs to be given them."""

    @property
    def current(self) -> int:
        """How many calls may run now."""

    def learn(self, ended: Sequence[EndedCall], running: int, now_s: float) -> None:
        """Take calls that have ended.

        Args:
            ended: the calls.
            running: how many calls run now.
            now_s: the present moment.
        """


@dataclass(frozen=True, slots=True)
class FixedLimit:
    """Always the same number (``processor.max_in_flight``)."""

    current: int
    learns: ClassVar[bool] = False

    def learn(self, ended: Sequence[EndedCall], running: int, now_s: float) -> None:
        """Learn nothing."""
