"""The judgement of one history by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.checker import figures as counting
from tests.chaos.checker.bounds import bound
from tests.chaos.checker.changed import changed
from tests.chaos.checker.dead_lettering import dead_lettered_again, unfounded
from tests.chaos.checker.early_tombstone import early_tombstone
from tests.chaos.checker.exporting import doubled, false_export, misrouted, unpaired
from tests.chaos.checker.figures import void
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.loss import abandoned, forgotten, lost, unfinished
from tests.chaos.checker.registering import committed_past, early_call, handled_again, late_call, misnamed, not_as_told
from tests.chaos.checker.rows import missing_row, orphan_row, row_differs, view_differs
from tests.chaos.checker.story import story
from tests.chaos.checker.violation import Kind, Violation
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
