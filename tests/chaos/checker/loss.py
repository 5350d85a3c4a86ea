"""P1, P4: what a processor took has one end, and the sweeper and dead letters have a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.checker.disturbance import AFTERMATH_MS, explains, hits, overlaps
from tests.chaos.checker.ledger import Finding, Ledger, grouped
from tests.chaos.history.decoding import UNREADABLE_HEADERS
from tests.chaos.history.entries import EXPORTS, Registration, Republished, Tombstone, at, clock, wait_at
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
from waitreg.downstream.calls import ABORTED, Call
from waitreg.load.manifest import Coordinates

# From the answer to the tombstone in the log it takes milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 5_000


def lost(ledger: Ledger) -> Iterator[Finding]:
    """Find consumed records without an end; `unfinished` judges what isn't consumed yet."""
    registered = {entry.original for entry in ledger.open}
    on_its_way = {
        ledger.original_at(place)
        for place in ledger.id_of
        if ledger.is_given_up(place) or (place in ledger.redelivered and not ledger.is_consumed(place))
    }
    for place in ledger.inputs:
        ended = place in ledger.letters_of or place in registered or place in on_its_way or _is_done(ledger, place)
        if not ended and ledger.is_consumed(place):
            why = "consumed, and neither done nor dead-lettered nor discarded nor registered"
            yield place, why
    for place in ledger.redelivered:
        wait_id = ledger.id_of[place]
        published = wait_id in ledger.letters_of_id or wait_id in ledger.retries_of_id
        known = place in ledger.registrations_of or published
        calls = [*ledger.replays_of_id.get(wait_id, ()), *([] if ledger.eager else ledger.calls_of_id.get(wait_id, ()))]
        settled = any(map(ledger.settles, calls))
        if not (known or settled or ledger.is_given_up(place)) and ledger.is_consumed(place):
            why = f"its redelivery at {at(place)} was consumed, and neither done nor dead-lettered nor registered"
            yield ledger.original_at(place), why


def _is_done(ledger: Ledger, place: Coordinates) -> bool:
    if any(ledger.settles(call) for call in ledger.calls_of.get(place, ())):
        return True
    # Without the downstream's calls, tombstones are the only evidence.
    good = (Outcome.DISCARDED,) if ledger.history.calls is not None else (Outcome.DISCARDED, Outcome.DONE)
    return any(
        later.outcome in good
        for entry in ledger.registrations_by_original.get(place, ())
        for later in ledger.entries_of[entry.wait_id, entry.partition]
    )


def unfinished(ledger: Ledger) -> Iterator[Finding]:
    """Find registrations that are still open, and records that were never consumed."""
    for entry in ledger.open:
        why = f"{entry} is still open, it expires at {clock(entry.expires_at_ms)}"
        yield entry.original, why
    for place, wait_id in ledger.id_of.items():
        settled = wait_id in ledger.unregistered_letters or wait_id in ledger.retries_of_id
        if not (ledger.is_consumed(place) or settled or ledger.is_given_up(place)):
            committed = ledger.committed_to.get(place[:2], 0)
            why = f"the record at {at(place)} was never consumed: the commit is at {committed}"
            yield ledger.original_at(place), why


def abandoned(ledger: Ledger) -> Iterator[Finding]:
    """Find exported registrations whose process had no fault, and neither ended them nor registered them again.

    A fault of another process explains nothing, nor does a rebalance: a running call continues, and writes its
    tombstone. Not judged is what changed hands or was registered again, as its partition had moved; what ended so near
    to its export that answer or tombstone may only have been late; and what lived while the machine stalled. What a
    processor had ended before the export, `false_export` judges.
    """
    for export in ledger.exports:
        entry = ledger.registered_as(export)
        if entry is None or _is_moved(ledger, entry) or _was_ended(ledger, entry):
            continue
        calls = ledger.calls_of_id.get(export.wait_id, ())
        if any(abs(export.append_ms - call.finished_ms) < TOMBSTONE_MS for call in calls):
            continue
        from_ms, to_ms = _due(ledger, export, entry)
        felt = any(explains(fault, [entry.instance], from_ms, to_ms) for fault in ledger.history.faults)
        if not felt and not ledger.stalled_ms(from_ms, to_ms):
            answers = ", ".join(f"call {call.number} with status {call.status}" for call in calls)
            why = f"{export} of the {entry}, which no process ended or registered again; {answers or 'never called'}"
            yield entry.original, f"{why}; its process {entry.instance} had no fault that explains it"


def _is_moved(ledger: Ledger, entry: Registration) -> bool:
    others = (one for one in ledger.registrations_of_id[entry.wait_id] if one is not entry)
    return any(one.append_ms >= entry.append_ms or one.instance != entry.instance for one in others)


def _was_ended(ledger: Ledger, entry: Registration) -> bool:
    behind = ledger.entries_of[entry.wait_id, entry.partition]
    following = next((one for one in behind if one.offset > entry.offset), None)
    return isinstance(following, Tombstone) and following.outcome not in EXPORTS


def _due(ledger: Ledger, export: Republished, entry: Registration) -> tuple[int, int]:
    """Return the period in which a fault explains that a registration was left to expire.

    After an answer for good to its process its tombstone was due. Otherwise the time begins when the processor made the
    registration: it may have died before the broker had it. A called record has a while longer to be ended than another
    one. An answer to an earlier process that died in `deferred` before it registered anything doesn't count.
    """
    calls = ledger.calls_of_id.get(entry.wait_id, ())
    own = (call for call in calls if call.path in ("", entry.instance))
    if answers := [call.finished_ms for call in own if ledger.is_final(call)]:
        return max(answers), max(answers) + TOMBSTONE_MS
    called = bool(calls) or ledger.history.calls is None
    to_ms = min(export.append_ms, entry.expires_at_ms + (TOMBSTONE_MS if called else 0))
    return min(entry.append_ms, entry.expires_at_ms - ledger.ttl_ms), to_ms


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
    # A call may take long to reach the downstream, on a busy machine.
    return min(polled_ms, seen_ms - ledger.attempt_ms // 2)


def dead_lettered_again(ledger: Ledger) -> Iterator[Finding]:
    """Find registrations with several dead letters or retry records of a processor.

    A record that isn't registered is dead-lettered again each time that its partition moves, which isn't judged.
    """
    published = (*ledger.letters, *(one for retries in ledger.retries_of_id.values() for one in retries))
    own = (one for one in published if one.reason != Reason.EXPIRED)
    for where, letters in grouped(own, lambda one: one.registration).items():
        if len(letters) > 1:
            yield letters[-1].original, f"{wait_at(where)} has {len(letters)} dead letters of a processor"
