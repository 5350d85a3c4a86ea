"""P6: Postgres shows nothing that the log doesn't hold."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.shown import Shown
from tests.chaos.checker.violation import Kind, Violation


def orphan_row(ledger: Ledger) -> Iterator[Violation]:
    """Find rows of what doesn't stand, isn't committed, or can be read."""
    history, shown = ledger.history, Shown(ledger)
    for row in history.wait_rows or ():
        if row.wait_id not in shown.waits:
            why = f"a row in wait shows {words.registration(row.place)}, which does not stand"
            yield Violation(Kind.ORPHAN_ROW, ledger.about(row.wait_id), why)
    for letter in history.dead_letter_rows or ():
        if letter.place not in shown.letters:
            why = f"a row in dead_letter shows {words.place(letter.place)}, where no committed record stands"
            yield Violation(Kind.ORPHAN_ROW, letter.original or words.place(letter.place), why)
    for aside in history.quarantine_rows or ():
        entry = shown.unreadable.get(aside.place[1:])
        if entry is None or aside.place[0] != history.wait_topic:
            why = f"a row in quarantine ({aside.error}) shows {words.place(aside.place)}, which can be read"
            yield Violation(Kind.ORPHAN_ROW, words.place(aside.place), why)
    for progress in history.progress_rows or ():
        if (progress.topic, progress.partition) not in shown.ends:
            why = f"a row in sink_progress names {progress.topic}/{progress.partition}, which the sink doesn't read"
            yield Violation(Kind.ORPHAN_ROW, f"{progress.topic}/{progress.partition}", why)
