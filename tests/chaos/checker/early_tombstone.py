"""P1: a tombstone comes after what it depends on, behind its registration and in its partition."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.chaos.checker.exporting import pair_exports
from tests.chaos.checker.ledger import ROUNDING_MS, Finding, Ledger
from tests.chaos.history.entries import Registration, Republished, Tombstone, WaitEntry, clock
from tests.chaos.history.history import Poll
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
from waitreg.downstream.calls import Call


def early_tombstone(ledger: Ledger) -> Iterator[Finding]:
    """Find tombstones that come before their cause.

    Of an ID's tombstones of one outcome the nth needs n causes before it (calls, or dead letters); which of these
    causes which tombstone doesn't matter then.
    """
    for (wait_id, partition), entries in ledger.entries_of.items():
        first_offset = next((entry.offset for entry in entries if isinstance(entry, Registration)), math.inf)
        for entry in entries:
            if isinstance(entry, Tombstone) and entry.offset < first_offset:
                yield _early(ledger, entry, _misplaced(ledger, wait_id, partition))
        for outcome in (Outcome.DONE, Outcome.DISCARDED, Outcome.DEAD_LETTERED, Outcome.RETRIED):
            tombstones = [entry for entry in entries if entry.outcome == outcome]
            why_early = _before_letter if outcome in (Outcome.DEAD_LETTERED, Outcome.RETRIED) else _before_call
            for number, entry in enumerate(tombstones, start=1):
                if why := why_early(ledger, entry, number):
                    yield _early(ledger, entry, why)
    yield from _before_export(ledger)


def _early(ledger: Ledger, entry: WaitEntry, why: str) -> Finding:
    return ledger.about(entry.wait_id), f"{entry} {why}"


def _misplaced(ledger: Ledger, wait_id: str, partition: int) -> str:
    others = ledger.registrations_of_id.get(wait_id, ())
    if not others:
        return "has no registration at all"
    if all(entry.partition != partition for entry in others):
        return f"is in another partition than its {others[0]}"
    return f"comes before its {others[0]}"


def _before_call(ledger: Ledger, entry: WaitEntry, number: int) -> str:
    if ledger.history.calls is None:
        return ""
    calls = [call for call in ledger.calls_of_id.get(entry.wait_id, ()) if _leads_to(ledger, call, entry.outcome)]
    if len(calls) < number:
        return f"is number {number} of its kind, and there are {len(calls)} calls that may have led to it"
    ended_ms = calls[number - 1].finished_ms
    return f"comes before the end of its call at {clock(ended_ms)}" if ended_ms > entry.append_ms + ROUNDING_MS else ""


def _leads_to(ledger: Ledger, call: Call, outcome: str) -> bool:
    return call.status in ledger.discard_statuses if outcome == Outcome.DISCARDED else call.succeeded


def _before_letter(ledger: Ledger, entry: WaitEntry, number: int) -> str:
    if entry.outcome == Outcome.RETRIED:
        own, what = list(ledger.retries_of_id.get(entry.wait_id, ())), "retry records"
    else:
        failed = (Reason.FAILED, Reason.BLOCKED)
        own, what = [one for one in ledger.letters_of_id.get(entry.wait_id, ()) if one.reason in failed], "dead letters"
    letters = sorted(own, key=lambda letter: letter.append_ms)
    if len(letters) < number:
        return f"is number {number} of its kind, and there are {len(letters)} {what} that may have led to it"
    letter, poll = letters[number - 1], ledger.first_poll(entry)
    if letter.append_ms > entry.append_ms + ROUNDING_MS:
        return f"comes before its {letter}, written at {clock(letter.append_ms)}"
    if poll is not None and sum(not _lacks(poll, letter) for letter in letters) < number:
        return f"was seen by the poll of {clock(poll.began_ms)}, which did not see its {letter} yet"
    return ""


def _before_export(ledger: Ledger) -> Iterator[Finding]:
    exports_of: dict[Tombstone, list[Republished]] = {}
    tombstone_of = pair_exports(ledger).tombstone_of
    for export in ledger.exports:
        if (own := tombstone_of[export.place]) is not None:
            exports_of.setdefault(own, []).append(export)
    for entry, exports in exports_of.items():
        # Within their transaction either may be appended first; once it is decided both are there.
        poll = ledger.first_poll(entry, "wait_stable")
        # One of several exports belongs to the tombstone; `doubled` judges the others.
        if poll is not None and all(_lacks(poll, export) for export in exports):
            seen = f"was stable at the poll of {clock(poll.began_ms)}, which did not see its {exports[0]} yet"
            yield _early(ledger, entry, seen)


def _lacks(poll: Poll, letter: Republished) -> bool:
    """Return whether a poll shows that a record of a dead letter or redelivery topic didn't exist yet.

    A poll that doesn't know the partition, of a topic just created, shows nothing.
    """
    end = poll.letter_ends.get((letter.topic, letter.partition))
    return end is not None and end <= letter.offset
