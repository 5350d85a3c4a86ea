"""P7: a sweeper exports no more rows in one transaction than it was told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import EXPORTS, WaitEntry


def chunks(ledger: Ledger) -> Iterator[Violation]:
    """Find runs of export tombstones in the wait topic, with no transaction's end between them, that are too long.

    A transaction's end, commit or abort, is a record that no client shows: it leaves a gap in the offsets. A
    transaction of a sweeper is of one wait partition, and in each of them one comes after the other, since the next one
    isn't begun before the end of the one before stands in the log. Processors have no transactions.
    """
    most = ledger.history.limits.chunk_rows
    if most is None:
        return
    log = sorted(ledger.history.wait_log, key=lambda entry: entry.place)
    for partition, entries in groupby(log, key=lambda entry: entry.partition):
        for count, last in _runs(entries):
            if count > most:
                why = f"{count} up to the {words.entry(last)} in one transaction, and {most} are allowed"
                yield Violation(Kind.BOUND, f"exports of wait partition {partition}", why)


def _runs(entries: Iterator[WaitEntry]) -> Iterator[tuple[int, WaitEntry]]:
    """Return for each transaction how many tombstones of exports it has, and its last one."""
    count, last, next_offset = 0, None, 0
    for entry in entries:
        if entry.offset != next_offset and last is not None:
            yield count, last
            count, last = 0, None
        next_offset = entry.offset + 1
        if entry.outcome in EXPORTS:
            count, last = count + 1, entry
    if last is not None:
        yield count, last
