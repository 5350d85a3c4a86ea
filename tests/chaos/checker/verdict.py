"""The judgement of one history by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.checker import figures as counting
from tests.chaos.checker.abandoned import abandoned
from tests.chaos.checker.bound import bound
from tests.chaos.checker.changed import changed
from tests.chaos.checker.committed_past import committed_past
from tests.chaos.checker.dead_lettered_again import dead_lettered_again
from tests.chaos.checker.doubled import doubled
from tests.chaos.checker.early_call import early_call
from tests.chaos.checker.early_tombstone import early_tombstone
from tests.chaos.checker.false_export import false_export
from tests.chaos.checker.forgotten import forgotten
from tests.chaos.checker.handled_again import handled_again
from tests.chaos.checker.late_call import late_call
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.lost import lost
from tests.chaos.checker.misnamed import misnamed
from tests.chaos.checker.misrouted import misrouted
from tests.chaos.checker.missing_row import missing_row
from tests.chaos.checker.not_as_told import not_as_told
from tests.chaos.checker.orphan_row import orphan_row
from tests.chaos.checker.row_differs import row_differs
from tests.chaos.checker.story import story
from tests.chaos.checker.unfinished import unfinished
from tests.chaos.checker.unfounded import unfounded
from tests.chaos.checker.unpaired import unpaired
from tests.chaos.checker.view_differs import view_differs
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.checker.void import void
from tests.chaos.history.history import History

Rule = Callable[[Ledger], Iterator[Violation]]

RULES: Final[Mapping[Kind, Rule]] = {
    Kind.LOST: lost,
    Kind.COMMITTED_PAST: committed_past,
    Kind.FALSE_EXPORT: false_export,
    Kind.DOUBLED: doubled,
    Kind.UNPAIRED: unpaired,
    Kind.UNFINISHED: unfinished,
    Kind.CHANGED: changed,
    Kind.MISNAMED: misnamed,
    Kind.ORPHAN_ROW: orphan_row,
    Kind.MISSING_ROW: missing_row,
    Kind.ROW_DIFFERS: row_differs,
    Kind.VIEW_DIFFERS: view_differs,
    Kind.EARLY_TOMBSTONE: early_tombstone,
    Kind.EARLY_CALL: early_call,
    Kind.HANDLED_AGAIN: handled_again,
    Kind.FORGOTTEN: forgotten,
    Kind.NOT_AS_TOLD: not_as_told,
    Kind.MISROUTED: misrouted,
    Kind.UNFOUNDED: unfounded,
    Kind.DEAD_LETTERED_AGAIN: dead_lettered_again,
    Kind.LATE_CALL: late_call,
    Kind.ABANDONED: abandoned,
    Kind.BOUND: bound,
}


@dataclass(frozen=True)
class Verdict:
    """What was found.

    ``counts`` has every kind, with 0 for what wasn't found. ``void`` says why nothing can be concluded (a fault that
    did not happen, no evidence), and is empty otherwise. ``figures`` are counts of what is no violation: records,
    done, dead_lettered, expired, ...
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
        """Return what was found about the first records that a promise was broken for, and their whole stories."""
        by_subject: dict[object, list[Violation]] = {}
        for violation in self.violations:
            by_subject.setdefault(violation.about, []).append(violation)
        ledger = Ledger(self.history)
        told = []
        for found in list(by_subject.values())[:limit]:
            headings = [f"{violation.kind}: {violation.why}" for violation in found]
            told.append("\n".join([*headings, story(ledger, found[0].about)]))
        return told


def check(history: History) -> Verdict:
    """Judge a history by all rules."""
    ledger = Ledger(history)
    violations = [violation for rule in RULES.values() for violation in rule(ledger)]
    counts = Counter(violation.kind for violation in violations)
    return Verdict(violations, {kind: counts[kind] for kind in Kind}, void(history), counting.figures(ledger), history)
