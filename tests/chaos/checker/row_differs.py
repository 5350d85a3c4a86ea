"""P6: each row says what the log says, and the sink has come to the log's end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.shown import Shown
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import DISCARDED, DONE, EXPIRED, EXPORTS, FAILED, Republished, WaitEntry
from tests.chaos.history.rows import DeadLetterRow, WaitRow

_REGISTRATION = (
    "original",
    "wait_id",
    "expires_at_ms",
    "group",
    "instance",
    "delivery",
    "dead_letter_topic",
    "expiry_policy",
    "max_deliveries",
    "source",
)


def row_differs(ledger: Ledger) -> Iterator[Violation]:
    """Find rows that differ from their record in anything but its content, which `changed` compares."""
    shown = Shown(ledger)
    for row in ledger.history.wait_rows or ():
        entry = shown.waits.get(row.wait_id)
        if entry is not None and (why := _wait(row, entry)):
            yield Violation(Kind.ROW_DIFFERS, ledger.about(row.wait_id), f"the row of {words.entry(entry)}: {why}")
    for letter_row in ledger.history.dead_letter_rows or ():
        letter = shown.letters.get(letter_row.place)
        if letter is not None and (why := _letter(letter_row, letter) or _late(ledger, shown, letter_row)):
            about = words.place(letter.place) if letter.lineage is None else letter.lineage.original
            yield Violation(Kind.ROW_DIFFERS, about, f"the row of {words.letter(letter)}: {why}")
    for place, position in shown.positions.items():
        end = shown.ends.get(place)
        if end is not None and position != end:
            why = f"sink_progress is at {position}, the log's end at {end}"
            yield Violation(Kind.ROW_DIFFERS, f"{place[0]}/{place[1]}", why)


def _wait(row: WaitRow, entry: WaitEntry) -> str:
    said = entry.registration
    if row.registration is None:
        return row.unreadable
    assert said is not None
    if row.place != entry.place:
        return f"it shows {words.registration(row.place)}"
    return _compared({name: (getattr(row.registration, name), getattr(said, name)) for name in _REGISTRATION})


def _letter(row: DeadLetterRow, letter: Republished) -> str:
    if row.unreadable:
        return row.unreadable
    lineage = letter.lineage
    if lineage is None:
        return "" if row.reason is None else f"reason is {row.reason}, and the record is no dead letter"
    return _compared(
        {
            "reason": (row.reason, letter.reason),
            "dead_letter_time": (row.time_ms, letter.time_ms),
            "wait_expiration_uuid": (row.wait_id, lineage.wait_id),
            "original": (row.original, lineage.original),
            "registration": (row.registration, lineage.registration),
            "consumer_group": (row.group, lineage.group),
            "instance": (row.instance, lineage.instance),
            "delivery": (row.delivery, lineage.delivery),
            "error_class": (row.error_class, letter.error_class),
            "error_message": (row.error_message, letter.error_message),
            "error_stacktrace": (row.error_stacktrace, letter.error_stacktrace),
        }
    )


def _late(ledger: Ledger, shown: Shown, row: DeadLetterRow) -> str:
    """Return what is wrong with the mark of a late completion, where the log leaves no doubt about it."""
    if row.reason != EXPIRED or row.wait_id is None:
        return "finished_late is set, and it did not expire" if row.finished_late else ""
    also_failed = any(
        letter.reason == FAILED and letter.place in shown.letters
        for letter in ledger.letters_of_id.get(row.wait_id, ())
    )
    if also_failed and not row.finished_late:
        return "finished_late is not set, and there is a `failed` dead letter of its id"
    entries = [] if row.registration is None else ledger.entries_of.get((row.wait_id, row.registration[0]), ())
    finished = any(entry.is_tombstone and entry.outcome not in EXPORTS for entry in entries)
    if not row.finished_late and _done_behind_its_export(shown, entries):
        return "finished_late is not set, and a processor has finished it behind its export"
    if row.finished_late and not also_failed and not finished:
        return "finished_late is set, and no processor has finished it"
    return ""


def _done_behind_its_export(shown: Shown, entries: Sequence[WaitEntry]) -> bool:
    """Return whether an id's one registration was exported, and then finished, as far as the sink has come."""
    seen = [entry for entry in entries if shown.is_behind(entry)]
    outcomes = [entry.outcome for entry in seen if entry.is_tombstone]
    if sum(entry.registration is not None for entry in entries) != 1 or EXPIRED not in outcomes:
        return False
    return not {DONE, DISCARDED}.isdisjoint(outcomes[outcomes.index(EXPIRED) :])


def _compared(fields: dict[str, tuple[object, object]]) -> str:
    return "; ".join(f"{name} is {seen}, in the log {said}" for name, (seen, said) in fields.items() if seen != said)
