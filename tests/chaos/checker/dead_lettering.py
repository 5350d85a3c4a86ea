"""P1: a processor dead-letters what failed and what can't be registered, once each time that it takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import AFTERMATH_MS, BROKER, PROCESSORS, hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.sights import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.decoding import UNREADABLE_HEADERS
from tests.chaos.history.entries import EXPIRED, FAILED, MALFORMED, UNREGISTRABLE, Republished
from tests.chaos.history.history import FaultDone
from wait_registry.demo.calls import ABORTED


def unfounded(ledger: Ledger) -> Iterator[Violation]:
    """Find dead letters of a processor that nothing explains."""
    for letter in ledger.letters:
        if why := _why(ledger, letter):
            assert letter.lineage is not None
            yield Violation(Kind.UNFOUNDED, letter.lineage.original, f"{words.letter(letter)}: {why}")


def _why(ledger: Ledger, letter: Republished) -> str:
    assert letter.lineage is not None
    place, told = letter.lineage.original, ledger.history.told
    record = ledger.published.get(place)
    if letter.reason == MALFORMED and record is not None and record.fingerprint.headers != UNREADABLE_HEADERS:
        return "everybody can read its headers"
    if letter.reason == UNREGISTRABLE and told is not None:
        most = ledger.history.registered_bytes.get(place, told.registration_bytes + 1)
        if most <= told.registration_bytes:
            return f"it takes {most} bytes in a wait record at most, and {told.registration_bytes} are allowed"
    return _without_failure(ledger, letter) if letter.reason == FAILED else ""


def _without_failure(ledger: Ledger, letter: Republished) -> str:
    """Judge a failure that no call shows: one answer that isn't to be tried again, or as many failures as tries.

    On a busy machine the time of all tries may be over before the downstream has seen one of them, or before the
    answer was read. So what took as long as that isn't judged, nor what a fault of the downstream explains.
    """
    history, registered = ledger.history, ledger.registered_as(letter)
    if history.calls is None or history.told is None or registered is None or letter.lineage is None:
        return ""
    calls = ledger.calls_of_id.get(letter.lineage.wait_id, ())
    from_ms, to_ms = registered.append_ms, letter.timestamp_ms
    refused = any(hits(one, "downstream") and overlaps(one, from_ms, to_ms, AFTERMATH_MS) for one in history.faults)
    failed = [call for call in calls if not call.succeeded]
    final = any(call.status not in (0, ABORTED, *history.told.retry_statuses) for call in failed)
    if refused or to_ms - from_ms >= history.told.attempt_ms or final or len(failed) >= history.told.tries:
        return ""
    seen = f"{len(calls)} calls, {len(failed)} of which failed"
    return f"{seen}, {history.told.tries} tries were to be made, and {to_ms - from_ms} ms are no time-out"


# From a fault's end to the last rebalance that follows from it: a process that is started again joins the group when it
# has come up, on a busy machine.
REBALANCED_MS = 30_000
# Whoever dies or freezes is missed by the group, and comes back to it.
_REBALANCES = 2


def dead_lettered_again(ledger: Ledger) -> Iterator[Violation]:
    """Find more dead letters of a processor of one id than registrations, or than what befell the group explains.

    A record is taken again when its partition moves before its offset is committed: by faults of processors, of the
    broker (sessions run out), or partitions that are added. While a storm continues it may move each second; and while
    the machine is stalled, or the group forms, without a fault. Whenever it is taken again it is registered again,
    so that no registration has two dead letters; what can't be registered shows no more than its letters.
    """
    for letters in ledger.letters_of_id.values():
        own = sorted((one for one in letters if one.reason != EXPIRED), key=lambda one: one.timestamp_ms)
        if len(own) > 1 and (why := _why_dead_lettered_again(ledger, own)):
            assert own[-1].lineage is not None
            yield Violation(Kind.DEAD_LETTERED_AGAIN, own[-1].lineage.original, f"{words.letter(own[-1])}: {why}")


def _why_dead_lettered_again(ledger: Ledger, letters: Sequence[Republished]) -> str:
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
