"""P5: key, value, headers and timestamp are everywhere what they were when the record was published."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.decoding import UNREADABLE_HEADERS
from tests.chaos.history.entries import EXPORTS, MALFORMED, UNREGISTRABLE, Lineage, Republished, WaitEntry
from wait_registry.demo.calls import ABORTED, Call
from wait_registry.demo.manifest import Coordinates, Fingerprint, Published, fingerprint

NO_HEADERS = fingerprint(None, None, ()).headers
EMPTY_BODY = fingerprint(None, b"", ()).value


def changed(ledger: Ledger) -> Iterator[Violation]:
    """Find differences in wait records, dead letters, redeliveries, rows, and bodies that the downstream got."""
    for entry in ledger.log:
        if why := _entry(ledger, entry):
            about = entry.registration.original if entry.registration is not None else ledger.about(entry.wait_id)
            yield Violation(Kind.CHANGED, about, f"{words.entry(entry)}: {why}")
    for letter in (*ledger.history.dead_letters, *ledger.history.redelivered):
        if letter.committed and (why := _republished(ledger, letter)):
            about = words.place(letter.place) if letter.lineage is None else letter.lineage.original
            yield Violation(Kind.CHANGED, about, f"{words.letter(letter)}: {why}")
    yield from changed_rows(ledger)
    for place, calls in ledger.calls_of.items():
        for call in calls:
            if why := _body(ledger.published.get(place), call) or _attempt(ledger, call):
                yield Violation(Kind.CHANGED, place, f"call {call.number} at {words.time(call.started_ms)}: {why}")


def difference(
    ledger: Ledger,
    original: Coordinates,
    content: Fingerprint,
    timestamp: tuple[int | None, str | None],
    *,
    malformed: bool = False,
) -> str:
    """Return how a copy differs from what was published; empty when it doesn't.

    A `malformed` dead letter is one of a record whose headers the client can't read, and has none. ``timestamp`` is ms
    and type; the type of what doesn't are in the input topics is not known.
    """
    published, timestamp_ms = ledger.published.get(original), timestamp[0]
    if published is None:
        return "no such record was published"
    wanted = published.fingerprint
    if malformed and wanted.headers == UNREADABLE_HEADERS:
        wanted = Fingerprint(wanted.key, wanted.value, NO_HEADERS)
    differing = [part for part in ("key", "value", "headers") if getattr(wanted, part) != getattr(content, part)]
    if timestamp_ms != published.timestamp_ms:
        differing.append(f"timestamp ({timestamp_ms}, published {published.timestamp_ms})")
    timestamp_type = ledger.history.timestamp_types.get(original, timestamp[1])
    if timestamp[1] != timestamp_type:
        differing.append(f"timestamp type ({timestamp[1]}, in the input {timestamp_type})")
    return f"{', '.join(differing)} differs from what was published" if differing else ""


def _entry(ledger: Ledger, entry: WaitEntry) -> str:
    said = entry.registration
    if said is None:
        # A tombstone names no group: one under an id of ours is ours.
        ours = entry.group == ledger.history.group or entry.wait_id in ledger.original_of
        return entry.unreadable if ours else ""
    if why := difference(ledger, said.original, said.content, (said.timestamp_ms, said.timestamp_type)):
        return why
    if said.group != ledger.history.group:
        return f"it names the group {said.group}"
    attempt = 1
    if said.source is not None:
        again = ledger.redelivered.get(said.source)
        if again is None or again.lineage is None or again.lineage.original != said.original:
            return f"it names {words.place(said.source)}, where its record was not redelivered"
        attempt = again.lineage.delivery
    return "" if said.delivery == attempt else f"it says attempt {said.delivery}, and it is attempt {attempt}"


def _republished(ledger: Ledger, letter: Republished) -> str:
    lineage = letter.lineage
    if lineage is None:
        return "its lineage can't be read"
    timestamp = (lineage.timestamp_ms, lineage.timestamp_type)
    malformed = letter.reason == MALFORMED
    if why := difference(ledger, lineage.original, letter.content, timestamp, malformed=malformed):
        return why
    if lineage.group != ledger.history.group:
        return f"it names the group {lineage.group}"
    return _lineage(ledger, letter, lineage)


def _lineage(ledger: Ledger, letter: Republished, lineage: Lineage) -> str:
    if letter.reason in (UNREGISTRABLE, MALFORMED):
        return "" if lineage.registration is None else "it names a registration, and says that it can't have one"
    entry = ledger.registered_as(letter)
    if entry is None or entry.registration is None:
        # Of an export `false_export` says so.
        return "" if letter.outcome in EXPORTS else f"{lineage.registration} is no registration of its id"
    said = entry.registration
    wanted = (said.original, said.delivery + (0 if letter.reason else 1), said.instance)
    seen = (lineage.original, lineage.delivery, lineage.instance)
    return "" if seen == wanted else f"it says {seen}, its registration's record, attempt and instance are {wanted}"


def changed_rows(ledger: Ledger) -> Iterator[Violation]:
    """Find rows whose content differs."""
    for row in ledger.history.wait_rows or ():
        said = row.registration
        if said and (why := difference(ledger, said.original, said.content, (said.timestamp_ms, said.timestamp_type))):
            yield Violation(Kind.CHANGED, said.original, f"its row in wait: {why}")
    for letter in ledger.history.dead_letter_rows or ():
        if letter.original is None or letter.content is None:
            continue
        timestamp, malformed = (letter.timestamp_ms, letter.timestamp_type), letter.reason == MALFORMED
        if why := difference(ledger, letter.original, letter.content, timestamp, malformed=malformed):
            place = words.place(letter.place)
            yield Violation(Kind.CHANGED, letter.original, f"its row in dead_letter for {place}: {why}")


def _attempt(ledger: Ledger, call: Call) -> str:
    registered = ledger.registrations_of_id.get(call.wait_id or "", ())
    attempts = {entry.registration.delivery for entry in registered if entry.registration is not None}
    # Without any it is `early_call`'s.
    if not attempts or call.delivery in attempts:
        return ""
    return f"it said attempt {call.delivery}, registered was {', '.join(map(str, sorted(attempts)))}"


def _body(published: Published | None, call: Call) -> str:
    if published is None:
        return "the downstream was called for a record that nobody published"
    # A caller that hung up may have sent half of it.
    if call.status == ABORTED or call.body_sha256 == (published.fingerprint.value or EMPTY_BODY):
        return ""
    return "the downstream got another body than was published"
