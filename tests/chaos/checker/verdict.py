"""The judgment of one history by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from tests.chaos.checker.asked import not_as_asked
from tests.chaos.checker.bounds import bound
from tests.chaos.checker.changed import changed
from tests.chaos.checker.disturbance import AFTERMATH_MS, BROKER, hits
from tests.chaos.checker.early_tombstone import early_tombstone
from tests.chaos.checker.exporting import doubled, false_export, misrouted, unpaired
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.loss import abandoned, dead_lettered_again, lost, unfinished, unfounded
from tests.chaos.checker.ordering import out_of_order
from tests.chaos.checker.registering import (
    committed_past,
    early_call,
    early_retry,
    handled_again,
    late_call,
    misnamed,
    not_as_set,
)
from tests.chaos.checker.rows import missing_row, orphan_row, row_differs, snapshot_differs
from tests.chaos.checker.story import story
from tests.chaos.history.history import History
from waitreg.load.manifest import Coordinates

# Polls come a few times per second; on a busy machine one of them may take some seconds.
UNSEEN_MS = 15_000
# A snapshot of the tables is taken every two seconds; Postgres may be down for some of that.
FEWEST_SNAPSHOTS = 3

RULES: Final = {
    rule.__name__: rule
    for rule in (
        lost,
        committed_past,
        false_export,
        doubled,
        unpaired,
        unfinished,
        changed,
        misnamed,
        orphan_row,
        missing_row,
        row_differs,
        snapshot_differs,
        early_tombstone,
        early_call,
        early_retry,
        out_of_order,
        handled_again,
        not_as_set,
        misrouted,
        unfounded,
        dead_lettered_again,
        late_call,
        abandoned,
        not_as_asked,
        bound,
    )
}


class Violation(NamedTuple):
    """What a rule has found, by the rule's name."""

    rule: str
    about: Coordinates | str
    why: str


@dataclass(frozen=True)
class Verdict:
    """What was found.

    ``void`` says why nothing can be concluded (a fault that did not happen, no evidence), and is empty otherwise.
    ``figures`` are counts of records by their ends; a record with several ends counts in each.
    """

    violations: Sequence[Violation]
    void: str
    figures: Mapping[str, int]
    history: History

    @property
    def counts(self) -> Counter[str]:
        """How many violations each rule has found."""
        return Counter(violation.rule for violation in self.violations)

    @property
    def passed(self) -> bool:
        """Whether the run happened as planned and no violation was seen."""
        return not self.void and not self.violations

    def stories(self, limit: int = 5) -> Sequence[str]:
        """Return what was found about the first records with violations, and their whole stories."""
        by_subject: dict[object, list[Violation]] = {}
        for violation in self.violations:
            by_subject.setdefault(violation.about, []).append(violation)
        ledger = Ledger(self.history)
        return [
            "\n".join([*(f"{one.rule}: {one.why}" for one in found), story(ledger, found[0].about)])
            for found in list(by_subject.values())[:limit]
        ]


def check(history: History) -> Verdict:
    """Judge a history by all rules."""
    ledger = Ledger(history)
    violations = [Violation(name, *found) for name, rule in RULES.items() for found in rule(ledger)]
    return Verdict(violations, "; ".join(_why_void(history)), _figures(ledger), history)


def _figures(ledger: Ledger) -> Mapping[str, int]:
    done = {place for place, calls in ledger.calls_of.items() if any(call.succeeded for call in calls)}
    return {
        "records": len(ledger.inputs),
        "done": len(done & ledger.inputs.keys()),
        "dead_lettered": len(ledger.letters_of.keys() & ledger.inputs.keys()),
        "expired": len({export.original for export in ledger.exports if export.reason}),
        "redelivered": len(ledger.redelivered),
        "aborted": sum(not entry.committed for entry in ledger.history.wait_log),
    }


def _why_void(history: History) -> Iterator[str]:
    """Yield why nothing can be concluded from a run."""
    for fault in history.faults:
        if not fault.happened:
            yield f"no proof that the fault {fault.name} of {fault.target} happened"
    if not history.inputs:
        yield "no record was published"
    if not history.polls:
        yield "no poll saw the commits during the run"
    elif (longest_ms := _longest_unseen_ms(history)) > UNSEEN_MS:
        yield f"no poll saw the commits for {longest_ms} ms, while the broker was available"
    if history.snapshots is not None and len(history.snapshots) < FEWEST_SNAPSHOTS:
        yield f"the tables were seen {len(history.snapshots)} times during the run"


def _longest_unseen_ms(history: History) -> int:
    """Return the longest time without a poll, from the first registration to the last entry, except broker faults."""
    seen = sorted((poll.began_ms, poll.ended_ms) for poll in history.polls)
    entries = [entry.append_ms for entry in history.wait_log]
    if entries:
        seen = [(min(entries), min(entries)), *seen, (max(entries), max(entries))]
    away = [(one.began_ms, one.ended_ms + AFTERMATH_MS) for one in history.faults if hits(one, *BROKER)]
    longest_ms = 0
    for (_, from_ms), (to_ms, _) in pairwise(seen):
        explained = sum(max(0, min(to_ms, ended_ms) - max(from_ms, began_ms)) for began_ms, ended_ms in away)
        longest_ms = max(longest_ms, to_ms - from_ms - explained)
    return longest_ms
