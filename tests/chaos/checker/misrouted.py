"""P4: an expired registration goes where it says: delivered again or dead-lettered, and to which topic."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import REDELIVERED, Registration, Republished
from tests.chaos.history.where import redelivery_topics


def misrouted(ledger: Ledger) -> Iterator[Violation]:
    """Find exports that their registration's policy, attempts or topic didn't ask for.

    What may be too large for the redelivery topic may be dead-lettered in its place: from half of the largest wait
    record on, that isn't judged.
    """
    for export in ledger.exports:
        registered = ledger.registered_as(export)
        if registered is None or registered.registration is None:
            continue  # which is `false_export`'s
        if why := _why(ledger, export, registered.registration):
            about = registered.registration.original
            yield Violation(Kind.MISROUTED, about, f"{words.letter(export)} of the {words.entry(registered)}: {why}")


def _why(ledger: Ledger, export: Republished, said: Registration) -> str:
    again = said.expiry_policy == "redeliver" and said.delivery < said.max_deliveries
    asked = f"{said.expiry_policy}, attempt {said.delivery} of at most {said.max_deliveries}"
    if export.outcome == REDELIVERED:
        (topic,) = redelivery_topics([said.original[0]], said.group)
        if not again:
            return f"delivered again, and it says {asked}"
    else:
        topic = said.dead_letter_topic
        if again and not _is_large(ledger, said):
            return f"dead-lettered, and it says {asked}"
    return "" if export.topic == topic else f"it belongs into {topic}"


def _is_large(ledger: Ledger, said: Registration) -> bool:
    told = ledger.history.told
    return told is not None and 2 * ledger.history.registered_bytes.get(said.original, 0) > told.registration_bytes
