"""P2: a committed offset never passes a record whose wait record, or dead letter in its place, isn't acknowledged."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.history import History
from tests.chaos.history.look import Look
from wait_registry.demo.manifest import Coordinates


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
