"""P5: key, value, headers and timestamp are everywhere what they were when the record was published."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.ledger import Finding, Ledger, about_record
from tests.chaos.history.decoding import UNREADABLE_HEADERS
from tests.chaos.history.entries import (
    EXPORTS,
    Registration,
    Republished,
    TopicRecord,
    Unreadable,
    WaitEntry,
    at,
    clock,
)
from wait_registry.records.dead_letter import Reason
from wait_registry.records.operation import Place
from waitreg.downstream.calls import ABORTED, Call
from waitreg.load.manifest import Coordinates, Fingerprint, fingerprint

NO_HEADERS = fingerprint(None, None, ()).headers
EMPTY_BODY = fingerprint(None, b"", ()).value


def changed(ledger: Ledger) -> Iterator[Finding]:
    """Find differences in wait records, dead letters, redeliveries, and bodies that the downstream got."""
    for entry in ledger.log:
        if why := _entry(ledger, entry):
            yield ledger.about(entry.wait_id), f"{entry}: {why}"
    for letter in (*ledger.history.dead_letters, *ledger.history.redelivered):
        if letter.committed and (why := _republished(ledger, letter)):
            yield about_record(letter), f"{letter}: {why}"
    for place, calls in ledger.calls_of.items():
        for call in calls:
            if why := _body(ledger, place, call) or _delivery(ledger, call):
                yield place, f"call {call.number} at {clock(call.started_ms)}: {why}"


def _difference(ledger: Ledger, copy: Registration | Republished) -> str:
    """Return how a copy differs from what was published; empty when it doesn't.

    A `malformed` dead letter is one of a record whose headers the client can't read, and has none.
    """
    published = ledger.inputs.get(copy.original)
    if published is None:
        return "no such record was published"
    wanted = published.content
    malformed = isinstance(copy, Republished) and copy.reason == Reason.MALFORMED
    if malformed and wanted.headers == UNREADABLE_HEADERS:
        wanted = Fingerprint(wanted.key, wanted.value, NO_HEADERS)
    parts = ("key", "value", "headers")
    differing = [part for part in parts if getattr(wanted, part) != getattr(copy.content, part)]
    if copy.timestamp_ms != published.timestamp_ms:
        differing.append(f"timestamp ({copy.timestamp_ms}, published {published.timestamp_ms})")
    if copy.timestamp_type != published.timestamp_type:
        differing.append(f"timestamp type ({copy.timestamp_type}, in the input {published.timestamp_type})")
    return f"{', '.join(differing)} differs from what was published" if differing else ""


def _entry(ledger: Ledger, entry: WaitEntry) -> str:
    if isinstance(entry, Unreadable):
        # A tombstone names no group, but it belongs to our group if its ID does.
        ours = entry.group == ledger.history.group or entry.wait_id in ledger.original_of
        return entry.why if ours else ""
    if not isinstance(entry, Registration):
        return ""
    if why := _difference(ledger, entry):
        return why
    if entry.group != ledger.history.group:
        return f"it names the group {entry.group}"
    delivery = 1
    if entry.source is not None:
        again = ledger.redelivered.get(entry.source)
        if again is None or again.original != entry.original:
            return f"it names {at(entry.source)}, where its record was not redelivered"
        delivery = again.delivery
    return "" if entry.delivery == delivery else f"it says delivery {entry.delivery}, and it is delivery {delivery}"


def _republished(ledger: Ledger, letter: TopicRecord) -> str:
    if not isinstance(letter, Republished):
        return "its lineage can't be read"
    if why := _difference(ledger, letter):
        return why
    if letter.group != ledger.history.group:
        return f"it names the group {letter.group}"
    if letter.reason in (Reason.UNREGISTRABLE, Reason.MALFORMED):
        return "" if letter.registration is None else "it names a registration, and says that it can't have one"
    if (mark := ledger.redriven.get(letter.place)) is not None:
        sources = [one for one in ledger.letters if mark.covers(Place(*one.place))]
        fits = any(_redriven_as(one) == (letter.delivery, *_redriven_as(letter)[1:]) for one in sources)
        return "" if fits else "it isn't the next delivery of a dead letter that its mark names"
    is_ours = ledger.eager and not ledger.is_replayed(letter.wait_id, letter.append_ms)
    if letter.registration is None and not is_ours and letter.outcome not in EXPORTS:
        return ""
    entry = ledger.registered_as(letter)
    if entry is None:
        # `false_export` judges exports without one.
        return "" if letter.outcome in EXPORTS else f"{letter.registration} is no registration of its ID"
    most = None if letter.reason else entry.max_deliveries + bool(letter.delay_s)
    wanted = (entry.original, entry.delivery + (0 if letter.reason else 1), most, entry.instance)
    seen = (letter.original, letter.delivery, letter.max_deliveries, letter.instance)
    return "" if seen == wanted else f"it says {seen}, its registration's record, deliveries and instance say {wanted}"


def _redriven_as(letter: Republished) -> tuple[object, ...]:
    """Return the next delivery's number, and what a redrive leaves as it is."""
    return (letter.delivery + 1, letter.original, letter.wait_id, letter.registration, letter.instance)


def _delivery(ledger: Ledger, call: Call) -> str:
    registered = ledger.registrations_of_id.get(call.wait_id or "", ())
    deliveries = {entry.delivery for entry in registered}
    # `early_call` judges calls without any.
    if not deliveries or call.delivery in deliveries:
        return ""
    return f"it said delivery {call.delivery}, registered was {', '.join(map(str, sorted(deliveries)))}"


def _body(ledger: Ledger, place: Coordinates, call: Call) -> str:
    published = ledger.inputs.get(place)
    if published is None:
        return "the downstream was called for a record that was never published"
    # A caller that hung up may have sent half of it.
    if call.status == ABORTED or call.body_sha256 == (published.content.value or EMPTY_BODY):
        return ""
    return "the downstream got another body than was published"
