"""P3: nothing is exported of which a later entry stood in the log when the log was read for it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import earlier, pauses_exports
from tests.chaos.checker.exports import exported
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import Republished, WaitEntry

# From the log's end, as the sweeper learns it, to DLQ_TIME it reads what is left of the tail and then the rows of one
# chunk: milliseconds; on a machine whose few cores are wanted by all, more. A tail that was never read, or only once,
# misses what is older than that by far: between outcome and expiry lies a time to live.
READING_MS = 2000
# From DLQ_TIME to the broker: the rows of the chunk are encoded, topics are looked up, a transaction of five seconds at
# most. So DLQ_TIME is believed, but no further than that.
WRITING_MS = 15_000
# Postgres' clock, by which a row falls due, DLQ_TIME's and the broker's are one host's; each cuts its time to
# milliseconds.
ROUNDING_MS = 5


def false_export(ledger: Ledger) -> Iterator[Violation]:
    """Find exports before their time, of what was no registration, and of what something had come after.

    When the tail was read isn't seen from outside. DLQ_TIME is taken after it; so an entry that the broker appended
    well before DLQ_TIME must have been in it. Whoever stood still in between (the sweeper frozen, Postgres or the
    broker away) may have read the tail as early as that began. A redelivery says no time of its own: the broker's
    stands for it, which is later by its way there. That time bounds DLQ_TIME too: an export before it falls due (its
    expiry, and what clocks may differ by) is one whatever it says, and what it was written long after has been in the
    tail.
    """
    pauses = [fault for fault in ledger.history.faults if pauses_exports(fault)]
    tombstone_of = exported(ledger).tombstone_of
    for export in ledger.exports:
        lineage = export.lineage
        assert lineage is not None
        written_ms = export.timestamp_ms
        decided_ms = written_ms if export.time_ms is None else export.time_ms
        read_ms = max(earlier(decided_ms, READING_MS, pauses), earlier(written_ms, WRITING_MS + READING_MS, pauses))
        why = _why(ledger, export, tombstone_of[export.place], decided_ms, read_ms)
        if why:
            yield Violation(Kind.FALSE_EXPORT, lineage.original, f"{words.letter(export)}: {why}")


def _why(ledger: Ledger, export: Republished, own: WaitEntry | None, decided_ms: int, read_ms: int) -> str:
    lineage = export.lineage
    assert lineage is not None
    if lineage.registration is None:
        return "it names no registration"
    registered = ledger.entry_at.get(lineage.registration)
    if registered is None or registered.registration is None or registered.wait_id != lineage.wait_id:
        return f"{words.registration(lineage.registration)} is no registration of {lineage.wait_id}"
    told, expires_at_ms = ledger.history.told, registered.registration.expires_at_ms
    due_ms = expires_at_ms + max(0, told.skew_ms - ROUNDING_MS if told is not None else 0)
    if (at_ms := min(decided_ms, export.timestamp_ms)) < due_ms:
        return f"at {words.time(at_ms)}, it expires at {words.time(expires_at_ms)} and falls due {words.time(due_ms)}"
    for entry in ledger.entries_of[lineage.wait_id, registered.partition]:
        between = registered.offset < entry.offset and (own is None or entry.offset < own.offset)
        if between and entry.append_ms < read_ms:
            return (
                f"{words.entry(entry)} had come after its registration, and the tail was read between "
                f"{words.time(read_ms)} and {words.time(decided_ms)}"
            )
    return ""
