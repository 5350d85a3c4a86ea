"""The judgement of one history by all rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.history import History


@dataclass(frozen=True)
class Verdict:
    """What was found.

    ``counts`` has every kind, with 0 for what wasn't found. ``void`` says why nothing can be concluded (a fault that
    did not happen), and is empty otherwise. ``figures`` are counts of what is no violation: records, done,
    dead_lettered, expired, ...
    """

    violations: Sequence[Violation]
    counts: Mapping[Kind, int]
    void: str
    figures: Mapping[str, int]
    history: History

    @property
    def passed(self) -> bool:
        """Whether the run happened as planned and no promise was seen broken."""
        return not self.void and not self.violations

    def stories(self, limit: int = 5) -> Sequence[str]:
        """Return the whole stories of the first records that a promise was broken for."""
        raise NotImplementedError


def check(history: History) -> Verdict:
    """Judge a history by all rules."""
    raise NotImplementedError
