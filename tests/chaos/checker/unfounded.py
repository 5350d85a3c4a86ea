"""P1: a processor dead-letters what failed, what can't be registered, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import AFTERMATH_MS, hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import FAILED, MALFORMED, UNREGISTRABLE, Republished
from tests.chaos.history.record import UNREADABLE_HEADERS
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
