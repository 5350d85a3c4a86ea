"""P1: a processor dead-letters a record once, each time that it is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import BROKER, PROCESSORS, hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.stillness import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import EXPIRED, Republished
from tests.chaos.history.history import FaultDone

# From a fault's end to the last rebalance that follows from it: a process that is started again joins the group when it
# has come up, on a busy machine.
REBALANCED_MS = 30_000
# Whoever dies or freezes is missed by the group, and comes back to it.
_REBALANCES = 2


def dead_lettered_again(ledger: Ledger) -> Iterator[Violation]:
    """Find more dead letters of a processor of one id than registrations, or than what befell the group explains.

    A record is taken again when its partition moves before its offset is committed: by faults of processors, of the
    broker (sessions run out), or partitions that are added. While a storm goes on it may move each second; and while
    the machine stands still, or the group forms, without a fault. Whenever it is taken again it is registered again,
    so that no registration has two dead letters; what can't be registered shows no more than its letters.
    """
    for letters in ledger.letters_of_id.values():
        own = sorted((one for one in letters if one.reason != EXPIRED), key=lambda one: one.timestamp_ms)
        if len(own) > 1 and (why := _why(ledger, own)):
            assert own[-1].lineage is not None
            yield Violation(Kind.DEAD_LETTERED_AGAIN, own[-1].lineage.original, f"{words.letter(own[-1])}: {why}")


def _why(ledger: Ledger, letters: Sequence[Republished]) -> str:
    lineages = [letter.lineage for letter in letters if letter.lineage is not None]
    wait_id, original = lineages[0].wait_id, lineages[0].original
    named = [lineage.registration for lineage in lineages if lineage.registration is not None]
    if twice := next((place for place in named if named.count(place) > 1), None):
        return f"{words.registration(twice)} has {named.count(twice)} dead letters of a processor"
    registered = ledger.registrations_of_id.get(wait_id, ())
    # Without any it is `changed`'s.
    if 0 < len(registered) < len(named):
        return f"it is number {len(named)} of an id that was registered {len(registered)} times"
    from_ms = min([letters[0].timestamp_ms, *(entry.append_ms for entry in registered)])
    if _group_forms(ledger, original) or stood_still_ms(ledger.looks, from_ms, letters[-1].timestamp_ms):
        return ""
    faults = [fault for fault in ledger.history.faults if _moves(fault, from_ms, letters[-1].timestamp_ms)]
    if len(letters) <= 1 + _REBALANCES * len(faults) or any(fault.name == "storm" for fault in faults):
        return ""
    return f"it is number {len(letters)} of its id, and {len(faults)} faults near them may have moved its partition"


def _moves(fault: FaultDone, from_ms: int, to_ms: int) -> bool:
    return hits(fault, *PROCESSORS, *BROKER, "input") and overlaps(fault, from_ms, to_ms, REBALANCED_MS)


def _group_forms(ledger: Ledger, original: tuple[str, int, int]) -> bool:
    """Return whether a record was there before the first processor worked: the others came one after the other."""
    first_ms = min((entry.append_ms for entry in ledger.registrations), default=0)
    record = ledger.published.get(original)
    return record is not None and record.timestamp_ms <= first_ms
