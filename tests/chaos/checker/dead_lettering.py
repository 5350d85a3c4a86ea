"""P1: a processor retries or dead-letters what failed, and dead-letters what can't be registered, once each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.checker.disturbance import AFTERMATH_MS, hits, overlaps
from tests.chaos.checker.ledger import Finding, Ledger, grouped
from tests.chaos.history.decoding import UNREADABLE_HEADERS
from tests.chaos.history.entries import Registration, Republished, wait_at
from wait_registry.demo.calls import ABORTED, Call
from wait_registry.records.dead_letter import Reason


def unfounded(ledger: Ledger) -> Iterator[Finding]:
    """Find dead letters and retry records of a processor that nothing explains."""
    for letter in (*ledger.letters, *(one for retries in ledger.retries_of_id.values() for one in retries)):
        if why := _why_unfounded(ledger, letter):
            yield letter.original, f"{letter}: {why}"


def _why_unfounded(ledger: Ledger, letter: Republished) -> str:
    record, allowed = ledger.inputs.get(letter.original), ledger.registration_bytes
    if letter.reason == Reason.FAILED or not letter.reason:
        return _without_failure(ledger, letter)
    if record is None:
        return ""
    if letter.reason == Reason.MALFORMED and record.content.headers != UNREADABLE_HEADERS:
        return "every client can read its headers"
    if letter.reason == Reason.UNREGISTRABLE and record.registered_bytes <= allowed:
        return f"it takes {record.registered_bytes} bytes in a wait record at most, and {allowed} are allowed"
    return ""


def _without_failure(ledger: Ledger, letter: Republished) -> str:
    """Judge a failure that no call shows: one answer that isn't retried, or as many failures as attempts.

    On a busy machine the time of all attempts may be over before the downstream has seen one of them, or before the
    answer was read. So what took as long as that isn't judged, nor what a fault of the downstream explains.
    """
    history, registered = ledger.history, ledger.registered_as(letter)
    if history.calls is None or registered is None:
        return ""
    to_ms = letter.append_ms
    calls = [call for call in ledger.calls_of_id.get(letter.wait_id, ()) if call.started_ms <= to_ms]
    from_ms = _taken_ms(ledger, registered, calls)
    refused = any(hits(one, "downstream") and overlaps(one, from_ms, to_ms, AFTERMATH_MS) for one in history.faults)
    failed = [call for call in calls if not call.succeeded]
    final = any(call.status not in (0, ABORTED, *ledger.retry_statuses) or ledger.is_blocked(call) for call in failed)
    if refused or to_ms - from_ms >= ledger.attempt_ms or final or len(failed) >= ledger.attempts:
        return ""
    seen = f"{len(calls)} calls, {len(failed)} of which failed"
    return f"{seen}, {ledger.attempts} attempts were due, and {to_ms - from_ms} ms are no timeout"


def _taken_ms(ledger: Ledger, registered: Registration, calls: Sequence[Call]) -> int:
    """Return when the calls of a registration can have begun."""
    if ledger.eager:
        return registered.append_ms
    # It was polled some time before it was registered. If it wasn't (warm-up), more than its calls may explain it.
    polled_ms = registered.expires_at_ms - ledger.ttl_ms - ledger.register_after_ms
    seen_ms = min((call.started_ms for call in calls if call.finished_ms >= polled_ms), default=polled_ms)
    # A call's way to the downstream, on a busy machine.
    return seen_ms - ledger.attempt_ms // 2


def dead_lettered_again(ledger: Ledger) -> Iterator[Finding]:
    """Find registrations with several dead letters or retry records of a processor.

    A record that isn't registered is dead-lettered again each time that its partition moves, which isn't judged.
    """
    published = (*ledger.letters, *(one for retries in ledger.retries_of_id.values() for one in retries))
    own = (one for one in published if one.reason != Reason.EXPIRED)
    for where, letters in grouped(own, lambda one: one.registration).items():
        if len(letters) > 1:
            yield letters[-1].original, f"{wait_at(where)} has {len(letters)} dead letters of a processor"
