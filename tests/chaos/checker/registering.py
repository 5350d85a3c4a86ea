"""P1, P2, P4: records are registered under their id, as the settings say, before they are committed or called."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.bounds import instances_of
from tests.chaos.checker.disturbance import AFTERMATH_MS, explains, hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.sights import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import Registration, WaitEntry
from tests.chaos.history.history import History, Look, Told
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Coordinates


def misnamed(ledger: Ledger) -> Iterator[Violation]:
    """Find registrations, dead letters in their place, and calls under another id than cluster, group, place derive."""
    for entry in ledger.registrations:
        assert entry.registration is not None
        wanted = ledger.id_of.get(entry.registration.consumed)
        if wanted is not None and wanted != entry.wait_id:
            why = f"{words.entry(entry)} has the id {entry.wait_id}, the record's is {wanted}"
            yield Violation(Kind.MISNAMED, entry.registration.original, why)
    known = {wait_id: ledger.original_at(place) for place, wait_id in ledger.id_of.items()}
    for wait_id, letters in ledger.unregistered_letters.items():
        for letter in letters:
            assert letter.lineage is not None
            if known.get(wait_id) != letter.lineage.original and letter.lineage.original in ledger.published:
                why = f"{words.letter(letter)} has the id {wait_id}, which is not its record's"
                yield Violation(Kind.MISNAMED, letter.lineage.original, why)
    for place, calls in ledger.calls_of.items():
        for call in calls:
            # A redelivered record is called with the place of its first delivery, and an id of its own.
            if place in ledger.published and known.get(call.wait_id or "") != place:
                why = f"call {call.number} at {words.time(call.started_ms)} has the key {call.wait_id}, another's"
                yield Violation(Kind.MISNAMED, place, why)


# The processor's clock and the broker's are one host's.
EXPIRY_ROUNDING_MS = 50
# From the moment when the processor counts the time to live from to the broker: milliseconds, or a busy machine's
# hiccup.
ON_ITS_WAY_MS = 5_000


def not_as_told(ledger: Ledger) -> Iterator[Violation]:
    """Find registrations that differ from the run's settings, and expiries that don't follow from the time to live.

    What took long to reach the broker, while the broker or its own process had a fault, has less time left; a time in
    which the machine stalled doesn't count.
    """
    told = ledger.history.told
    if told is None:
        return
    for entry in ledger.registrations:
        said = entry.registration
        assert said is not None
        if why := _differs(said, told) or _lives(ledger, entry, said, told):
            yield Violation(Kind.NOT_AS_TOLD, said.original, f"{words.entry(entry)}: {why}")


def _differs(said: Registration, told: Told) -> str:
    fields = {
        "policy": (said.expiry_policy, told.expiry_policy or said.expiry_policy),
        "max_deliveries": (said.max_deliveries, told.max_deliveries),
        "dead_letter_topic": (said.dead_letter_topic, told.dead_letter_topic),
    }
    return "; ".join(
        f"{name} is {seen}, told was {wanted}" for name, (seen, wanted) in fields.items() if seen != wanted
    )


def _lives(ledger: Ledger, entry: WaitEntry, said: Registration, told: Told) -> str:
    from_ms = said.expires_at_ms - told.ttl_ms
    late_ms = entry.append_ms - from_ms
    expiry = f"it expires at {words.time(said.expires_at_ms)}, and lives {told.ttl_ms} ms"
    if late_ms < -EXPIRY_ROUNDING_MS:
        return f"{expiry}: {-late_ms} ms too long"
    if late_ms - stood_still_ms(ledger.looks, from_ms, entry.append_ms) <= ON_ITS_WAY_MS:
        return ""
    explained = any(explains(fault, [said.instance], from_ms, entry.append_ms) for fault in ledger.history.faults)
    return "" if explained else f"{expiry}: {late_ms} ms too short, and no fault explains that"


def committed_past(ledger: Ledger) -> Iterator[Violation]:
    """Compare each look's commits with the ends that the same look saw afterwards.

    A record is judged by the first look that shows it committed; what an earlier one had seen acknowledged is so still.
    """
    judged = dict.fromkeys(ledger.consumable, 0)
    for look in (*ledger.looks, look_at_end(ledger.history)):
        for partition, committed in look.committed.items():
            offsets = ledger.consumable.get(partition, ())
            number = judged.get(partition, 0)
            while number < len(offsets) and offsets[number] < committed:
                place = (*partition, offsets[number])
                if not _is_safe(ledger, place, look):
                    yield Violation(Kind.COMMITTED_PAST, ledger.original_at(place), _why(ledger, place, look))
                number += 1
            judged[partition] = number


def look_at_end(history: History) -> Look:
    """Return what the reading saw: the commits first, then everything that the topics hold."""
    waits = {number: end for (topic, number), end in history.ends.items() if topic == history.wait_topic}
    letters = {place: end for place, end in history.ends.items() if place[0] != history.wait_topic}
    last_ms = max((look.ended_ms for look in history.looks), default=0)
    return Look(last_ms, last_ms, history.committed_at_end, waits, waits, letters)


def _is_safe(ledger: Ledger, place: Coordinates, look: Look) -> bool:
    return any(
        entry.offset < look.wait_ends.get(entry.partition, 0) for entry in ledger.registrations_of.get(place, ())
    ) or any(
        letter.offset < look.letter_ends.get((letter.topic, letter.partition), 0)
        for letter in ledger.unregistered_letters.get(ledger.id_of[place], ())
    )


def _why(ledger: Ledger, place: Coordinates, look: Look) -> str:
    seen = f"the look of {words.time(look.began_ms)} shows {words.place(place)} committed ({look.committed[place[:2]]})"
    registered = ledger.registrations_of.get(place, ())
    if not registered:
        return f"{seen}, and it was never registered"
    first = registered[0]
    end = look.wait_ends.get(first.partition, 0)
    return f"{seen} and after that the wait topic's end at {end}: no {words.entry(first)} yet"


# The downstream's clock and the broker's are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5


def early_call(ledger: Ledger) -> Iterator[Violation]:
    """Find calls that began before the first registration of their id was appended, or without any."""
    for wait_id, calls in ledger.calls_of_id.items():
        entries = ledger.registrations_of_id.get(wait_id, ())
        first = min(entries, key=lambda entry: entry.append_ms, default=None)
        for call in calls:
            if first is None or call.started_ms + ROUNDING_MS < first.append_ms:
                behind = "and nothing was ever registered" if first is None else f"before its {words.entry(first)}"
                why = f"call {call.number} began at {words.time(call.started_ms)}, {behind}"
                yield Violation(Kind.EARLY_CALL, ledger.about(wait_id), why)


def late_call(ledger: Ledger) -> Iterator[Violation]:
    """Find calls so shortly before their registration expires that an attempt, or all of a first start, doesn't fit.

    A processor begins nothing unless a margin is left beyond its attempts. That margin isn't judged: it is for the way
    from its decision to the downstream, on a busy machine. A fault of the downstream, of the broker or of its own
    process explains more, and so does a machine that stalled. Which of several owners made a call isn't seen from
    outside: of the registrations before a call the one that expires last counts.
    """
    told = ledger.history.told
    if told is None:
        return
    for wait_id, calls in ledger.calls_of_id.items():
        registered = ledger.registrations_of_id.get(wait_id, ())
        for call in calls:
            before = [entry for entry in registered if entry.append_ms <= call.started_ms + ROUNDING_MS]
            if not before:
                continue  # which is `early_call`'s
            entry = max(before, key=_expires_at_ms)
            first = not any(entry.append_ms <= other.started_ms < call.started_ms for other in calls)
            needed_ms = told.attempt_ms * (told.tries if first else 1)
            left_ms = _expires_at_ms(entry) - call.started_ms
            if left_ms < needed_ms and not _explained(ledger, call, entry):
                began = f"call {call.number} began at {words.time(call.started_ms)}"
                why = f"{began}, {left_ms} ms before its {words.entry(entry)} expires, and {needed_ms} ms are needed"
                yield Violation(Kind.LATE_CALL, ledger.about(wait_id), why)


def _expires_at_ms(entry: WaitEntry) -> int:
    assert entry.registration is not None
    return entry.registration.expires_at_ms


def _explained(ledger: Ledger, call: Call, entry: WaitEntry) -> bool:
    from_ms, to_ms = entry.append_ms, call.started_ms
    owners = instances_of(ledger.registrations_of_id[entry.wait_id])
    return bool(stood_still_ms(ledger.looks, from_ms, to_ms)) or any(
        explains(fault, owners, from_ms, to_ms)
        or (hits(fault, "downstream") and overlaps(fault, from_ms, to_ms, AFTERMATH_MS))
        for fault in ledger.history.faults
    )


def handled_again(ledger: Ledger) -> Iterator[Violation]:
    """Find ids that were called more often than their registrations have tries.

    Within its tries a record may be called again although it was answered: the answer may have come too late for its
    caller, which isn't seen from outside. So where there are two tries, two calls are never too many.
    """
    told = ledger.history.told
    if told is None:
        return
    for wait_id, calls in ledger.calls_of_id.items():
        registered = len(ledger.registrations_of_id.get(wait_id, ()))
        # Without any it is `early_call`'s.
        if registered and len(calls) > registered * told.tries:
            why = f"{len(calls)} calls, registered {registered} times for {told.tries} tries each"
            yield Violation(Kind.HANDLED_AGAIN, ledger.about(wait_id), why)
