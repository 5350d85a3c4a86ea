"""P1, P2, P4: records are registered under their ID, as the settings say, before they are committed or called."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tests.chaos.checker.disturbance import AFTERMATH_MS, explains, hits, overlaps
from tests.chaos.checker.ledger import ROUNDING_MS, Finding, Ledger
from tests.chaos.history.entries import Registration, Republished, at, clock
from tests.chaos.history.history import Act, History, Poll
from waitreg.downstream.calls import Call
from waitreg.load.manifest import Coordinates

# The processor's clock and the broker's are one host's.
EXPIRY_ROUNDING_MS = 50
# From the moment when the time to live begins to the broker: milliseconds, or a busy machine's hiccup.
ON_ITS_WAY_MS = 5_000


def misnamed(ledger: Ledger) -> Iterator[Finding]:
    """Find registrations, dead letters and calls under another ID or key than cluster, group and place derive."""
    yield from _miskeyed(ledger)
    for entry in ledger.registrations:
        wanted = ledger.id_of.get(entry.consumed)
        if wanted is not None and wanted != entry.wait_id:
            why = f"{entry} has the ID {entry.wait_id}, the record's is {wanted}"
            yield entry.original, why
    known = {wait_id: ledger.original_at(place) for place, wait_id in ledger.id_of.items()}
    for wait_id, letters in ledger.unregistered_letters.items():
        for letter in letters:
            if known.get(wait_id) != letter.original and letter.original in ledger.inputs:
                why = f"{letter} has the ID {wait_id}, which is not its record's"
                yield letter.original, why
    for place, calls in ledger.calls_of.items():
        for call in calls:
            # A record that is delivered again is called with place and key of its first delivery, and an ID of its own.
            if place not in ledger.inputs:
                continue
            said = f"call {call.number} at {clock(call.started_ms)}"
            if known.get(call.wait_id or "") != place:
                yield place, f"{said} has the wait ID {call.wait_id}, another record's"
            if call.idempotency_key != ledger.id_of[place]:
                yield place, f"{said} has the key {call.idempotency_key}, that of the first delivery is another"


def _miskeyed(ledger: Ledger) -> Iterator[Finding]:
    for one in (*ledger.registrations, *ledger.history.dead_letters, *ledger.history.redelivered):
        if not isinstance(one, (Registration, Republished)):
            continue
        wanted = ledger.id_of.get(one.original)
        if wanted is not None and wanted != one.idempotency_key:
            yield one.original, f"{one} has the key {one.idempotency_key}, the ID of the first delivery is {wanted}"


def not_as_set(ledger: Ledger) -> Iterator[Finding]:
    """Find registrations that differ from the run's settings, and expiries that don't follow from the time to live.

    A registration that took long to reach the broker, while the broker or its own process had a fault, has less time
    left. A time in which the machine stalled doesn't count.
    """
    for entry in ledger.registrations:
        if why := _differs(ledger, entry) or _lives(ledger, entry):
            yield entry.original, f"{entry}: {why}"


def _differs(ledger: Ledger, said: Registration) -> str:
    settings = ledger.history.settings
    again = None if said.source is None else ledger.redelivered.get(said.source)
    most = None if again is None else again.max_deliveries
    fields = {
        "expiry_policy": (said.expiry_policy, settings.processor.expiry_policy),
        "max_deliveries": (said.max_deliveries, most or settings.processor.max_deliveries),
        "dead_letter_topic": (said.dead_letter_topic, settings.dead_letter.topic),
    }
    return "; ".join(f"{name} is {seen}, set was {wanted}" for name, (seen, wanted) in fields.items() if seen != wanted)


def _lives(ledger: Ledger, entry: Registration) -> str:
    from_ms = entry.expires_at_ms - ledger.ttl_ms
    late_ms = entry.append_ms - from_ms
    expiry = f"it expires at {clock(entry.expires_at_ms)}, and lives {ledger.ttl_ms} ms"
    if late_ms < -EXPIRY_ROUNDING_MS:
        return f"{expiry}: {-late_ms} ms too long"
    if late_ms - ledger.stalled_ms(from_ms, entry.append_ms) <= ON_ITS_WAY_MS:
        return ""
    explained = any(explains(fault, [entry.instance], from_ms, entry.append_ms) for fault in ledger.history.faults)
    return "" if explained else f"{expiry}: {late_ms} ms too short, and no fault explains that"


def committed_past(ledger: Ledger) -> Iterator[Finding]:
    """Compare each poll's commits with the ends that the same poll saw afterwards.

    A record is judged by the first poll that shows it committed; what an earlier one had seen acknowledged is so still.
    What operators move back is judged again: it may have been passed over before, which needs no registration.
    """
    judged = dict.fromkeys(ledger.consumable, 0)
    moves = [fault for fault in ledger.history.faults if fault.concerned]
    for poll in (*ledger.polls, _poll_at_end(ledger.history)):
        for move in [move for move in moves if move.ended_ms <= poll.began_ms]:
            moves.remove(move)
            for act, partition, within in move.concerned:
                if act is Act.REWOUND and partition in judged:
                    first = bisect_left(ledger.consumable[partition], within.start)
                    judged[partition] = min(judged[partition], first)
        for partition, committed in poll.committed.items():
            offsets = ledger.consumable.get(partition, ())
            number = judged.get(partition, 0)
            while number < len(offsets) and offsets[number] < committed:
                place = (*partition, offsets[number])
                if not (ledger.is_passed(place, poll.ended_ms) or _is_safe(ledger, place, poll)):
                    yield ledger.original_at(place), _why_unsafe(ledger, place, poll)
                number += 1
            judged[partition] = number


def _poll_at_end(history: History) -> Poll:
    """Return what the reading saw: the commits first, then everything that the topics hold."""
    wait_topic = history.settings.wait.topic
    waits = {number: end for (topic, number), end in history.ends.items() if topic == wait_topic}
    letters = {place: end for place, end in history.ends.items() if place[0] != wait_topic}
    polled_ms, called_ms = (poll.ended_ms for poll in history.polls), (call.finished_ms for call in history.calls or ())
    last_ms = max((*polled_ms, *called_ms), default=0)
    return Poll(last_ms, last_ms, history.committed_at_end, waits, waits, letters)


def _is_safe(ledger: Ledger, place: Coordinates, poll: Poll) -> bool:
    return (
        any(entry.offset < poll.wait_ends.get(entry.partition, 0) for entry in ledger.registrations_of.get(place, ()))
        or any(
            letter.offset < poll.letter_ends.get((letter.topic, letter.partition), 0)
            for letters in (ledger.unregistered_letters, {} if ledger.eager else ledger.retries_of_id)
            for letter in letters.get(ledger.id_of[place], ())
        )
        or (not ledger.eager and _was_settled(ledger, place, poll))
    )


def _was_settled(ledger: Ledger, place: Coordinates, poll: Poll) -> bool:
    """Return whether a call had settled a record before a poll; in eager that isn't enough for a commit."""
    calls = ledger.calls_of_id.get(ledger.id_of[place], ())
    return any(ledger.settles(call) and call.finished_ms <= poll.ended_ms + ROUNDING_MS for call in calls)


def _why_unsafe(ledger: Ledger, place: Coordinates, poll: Poll) -> str:
    seen = f"the poll of {clock(poll.began_ms)} shows {at(place)} committed ({poll.committed[place[:2]]})"
    registered = ledger.registrations_of.get(place, ())
    if not registered:
        return f"{seen}, and it was never registered"
    end = poll.wait_ends.get(registered[0].partition, 0)
    return f"{seen} and after that the wait topic's end at {end}: no {registered[0]} yet"


def early_call(ledger: Ledger) -> Iterator[Finding]:
    """In eager, find calls that began before the first registration of their ID was appended, or without any."""
    if not ledger.eager:
        return
    for wait_id, calls in ledger.calls_of_id.items():
        first = min(ledger.registrations_of_id.get(wait_id, ()), key=lambda entry: entry.append_ms, default=None)
        for call in calls:
            if first is None or call.started_ms + ROUNDING_MS < first.append_ms:
                behind = "and nothing was ever registered" if first is None else f"before its {first}"
                why = f"call {call.number} began at {clock(call.started_ms)}, {behind}"
                yield ledger.about(wait_id), why


def late_call(ledger: Ledger) -> Iterator[Finding]:
    """Find calls so shortly before their registration expires that an attempt, or all of a first start, doesn't fit.

    The log doesn't show which of several owners made a call, so of the registrations before a call the one that
    expires last counts.
    """
    for wait_id, calls in ledger.calls_of_id.items():
        registered = ledger.registrations_of_id.get(wait_id, ())
        for call in calls:
            before = [entry for entry in registered if entry.append_ms <= call.started_ms + ROUNDING_MS]
            if not before:
                continue  # `early_call` judges it
            entry = max(before, key=lambda entry: entry.expires_at_ms)
            first = not any(entry.append_ms <= other.started_ms < call.started_ms for other in calls)
            needed_ms = ledger.attempt_ms * (ledger.attempts if first else 1)
            left_ms = entry.expires_at_ms - call.started_ms
            if left_ms + ROUNDING_MS < needed_ms and not _explained(ledger, call, entry):
                began = f"call {call.number} began at {clock(call.started_ms)}"
                why = f"{began}, {left_ms} ms before its {entry} expires, and {needed_ms} ms are needed"
                yield ledger.about(wait_id), why


def _explained(ledger: Ledger, call: Call, entry: Registration) -> bool:
    from_ms, to_ms = entry.append_ms, call.started_ms
    owners = ledger.instances_of(entry.wait_id)
    return bool(ledger.stalled_ms(from_ms, to_ms)) or any(
        explains(fault, owners, from_ms, to_ms)
        or (hits(fault, "downstream") and overlaps(fault, from_ms, to_ms, AFTERMATH_MS))
        for fault in ledger.history.faults
    )


def early_retry(ledger: Ledger) -> Iterator[Finding]:
    """Find calls of a record from a retry topic that began before its delay was over (D1)."""
    for place, record in ledger.redelivered.items():
        due_ms = record.append_ms + record.delay_s * 1000 - ROUNDING_MS
        for call in ledger.calls_of_id.get(ledger.id_of[place], ()) if record.delay_s else ():
            if call.started_ms < due_ms:
                why = f"call {call.number} of the {record} began at {clock(call.started_ms)}, due at {clock(due_ms)}"
                yield record.original, why


def handled_again(ledger: Ledger) -> Iterator[Finding]:
    """In eager, find IDs that were called more often than their registrations have attempts.

    Within its attempts a record may be called again although it was answered: the answer may have come too late for its
    caller, which can't be seen from outside. So where there are two attempts, two calls are never too many.
    """
    if not ledger.eager:
        return
    for wait_id, calls in ledger.calls_of_id.items():
        registered = len(ledger.registrations_of_id.get(wait_id, ()))
        # `early_call` judges calls without any.
        if registered and len(calls) > registered * ledger.attempts:
            why = f"{len(calls)} calls, registered {registered} times for {ledger.attempts} attempts each"
            yield ledger.about(wait_id), why
