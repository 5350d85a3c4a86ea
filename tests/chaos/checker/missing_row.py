"""P6: Postgres shows everything that the log holds."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.shown import Shown
from tests.chaos.checker.violation import Kind, Violation


def missing_row(ledger: Ledger) -> Iterator[Violation]:
    """Find what stands, was dead-lettered or can't be read, and has no row."""
    history, shown = ledger.history, Shown(ledger)
    if history.wait_rows is None or history.dead_letter_rows is None or history.quarantine_rows is None:
        return
    waits = {row.wait_id for row in history.wait_rows}
    for wait_id, entry in shown.waits.items():
        if wait_id not in waits:
            yield Violation(Kind.MISSING_ROW, ledger.about(wait_id), f"{words.entry(entry)} stands, and has no row")
    rows = {row.place for row in history.dead_letter_rows}
    for place, letter in shown.letters.items():
        if place not in rows:
            about = words.place(place) if letter.lineage is None else letter.lineage.original
            yield Violation(Kind.MISSING_ROW, about, f"{words.letter(letter)} has no row")
    aside = {row.place[1:] for row in history.quarantine_rows}
    for where, entry in shown.unreadable.items():
        if where not in aside and shown.must_be_quarantined(entry):
            why = f"{words.entry(entry)} ({entry.unreadable}) is not in quarantine"
            yield Violation(Kind.MISSING_ROW, ledger.about(entry.wait_id), why)
    for (topic, partition), end in shown.ends.items():
        if end and (topic, partition) not in shown.positions:
            why = f"{topic}/{partition} has no row in sink_progress, its end is {end}"
            yield Violation(Kind.MISSING_ROW, f"{topic}/{partition}", why)
