"""P1: a tombstone comes after what it depends on, behind its registration and in its partition."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.exporting import exported
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.sights import Sights, lacks
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import (
    DEAD_LETTERED,
    DISCARDED,
    DONE,
    EXPORTS,
    FAILED,
    RETRIED,
    Republished,
    WaitEntry,
)
from wait_registry.demo.calls import ABORTED, Call

# The downstream's clock and the broker's are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5


def early_tombstone(ledger: Ledger) -> Iterator[Violation]:
    """Find tombstones that stand before their cause.

    Of an id's tombstones of one outcome the nth needs n causes before it (calls, or dead letters): which caused which
    doesn't matter then.
    """
    sights = Sights(ledger.looks)
    for (wait_id, partition), entries in ledger.entries_of.items():
        first_offset = next((entry.offset for entry in entries if entry.registration is not None), math.inf)
        for entry in entries:
            if entry.is_tombstone and entry.offset < first_offset:
                why = f"{words.entry(entry)} {_elsewhere(ledger, wait_id, partition)}"
                yield Violation(Kind.EARLY_TOMBSTONE, ledger.about(wait_id), why)
            elif entry.outcome == RETRIED:
                why = f"{words.entry(entry)} can have no cause: nothing is delivered again by a processor"
                yield Violation(Kind.EARLY_TOMBSTONE, ledger.about(wait_id), why)
        for outcome, why_early in ((DONE, _before_call), (DISCARDED, _before_call), (DEAD_LETTERED, _before_letter)):
            tombstones = [entry for entry in entries if entry.outcome == outcome]
            for number, entry in enumerate(tombstones, start=1):
                if why := why_early(ledger, sights, entry, number):
                    yield Violation(Kind.EARLY_TOMBSTONE, ledger.about(wait_id), f"{words.entry(entry)} {why}")
    yield from _before_export(ledger, sights)


def _elsewhere(ledger: Ledger, wait_id: str, partition: int) -> str:
    others = [
        entry
        for entry in ledger.registrations_by_original.get(ledger.original_of.get(wait_id, ("", 0, 0)), ())
        if entry.wait_id == wait_id
    ]
    if not others:
        return "has no registration at all"
    if all(entry.partition != partition for entry in others):
        return f"is in another partition than its {words.entry(others[0])}"
    return f"stands before its {words.entry(others[0])}"


def _before_call(ledger: Ledger, sights: Sights, entry: WaitEntry, number: int) -> str:
    if ledger.history.calls is None:
        return ""
    calls = [
        call
        for call in ledger.calls_of_id.get(entry.wait_id, ())
        if (_discards(ledger, call) if entry.outcome == DISCARDED else call.succeeded)
    ]
    if len(calls) < number:
        return f"is number {number} of its kind, and there are {len(calls)} calls that may have led to it"
    ended_ms = calls[number - 1].finished_ms
    if ended_ms > entry.append_ms + ROUNDING_MS:
        return f"comes before the end of its call at {words.time(ended_ms)}"
    return ""


def _discards(ledger: Ledger, call: Call) -> bool:
    told = ledger.history.told
    return call.status not in (0, ABORTED) if told is None else call.status in told.discard_statuses


def _before_letter(ledger: Ledger, sights: Sights, entry: WaitEntry, number: int) -> str:
    letters = sorted(
        (letter for letter in ledger.letters_of_id.get(entry.wait_id, ()) if letter.reason in (FAILED, "blocked")),
        key=lambda letter: letter.timestamp_ms,
    )
    if len(letters) < number:
        return f"is number {number} of its kind, and there are {len(letters)} dead letters that may have led to it"
    letter, look = letters[number - 1], sights.first(entry)
    if letter.timestamp_ms > entry.append_ms + ROUNDING_MS:
        return f"comes before its {words.letter(letter)}, made at {words.time(letter.timestamp_ms)}"
    if look is not None and sum(not lacks(look, letter) for letter in letters) < number:
        return f"was seen by the look of {words.time(look.began_ms)}, which did not see its {words.letter(letter)} yet"
    return ""


def _before_export(ledger: Ledger, sights: Sights) -> Iterator[Violation]:
    exports_of: dict[WaitEntry, list[Republished]] = {}
    tombstone_of = exported(ledger).tombstone_of
    for export in ledger.exports:
        entry = tombstone_of[export.place]
        if entry is not None:
            exports_of.setdefault(entry, []).append(export)
    for entry, exports in exports_of.items():
        # Of an export made twice one is its own, and the other is `doubled`'s.
        why = [_unseen(sights, entry, export) for export in exports]
        if all(why):
            yield Violation(Kind.EARLY_TOMBSTONE, ledger.about(entry.wait_id), f"{words.entry(entry)} {why[0]}")


def _unseen(sights: Sights, entry: WaitEntry, export: Republished) -> str:
    assert entry.outcome in EXPORTS
    # Within their transaction either may be appended first; once it is decided both stand.
    look = sights.first_stable(entry)
    if look is None or not lacks(look, export):
        return ""
    return f"was stable at the look of {words.time(look.began_ms)}, which did not see its {words.letter(export)} yet"
