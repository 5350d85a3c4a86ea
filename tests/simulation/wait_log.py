"""One partition of the wait topic with transactions and compaction, and what is known of it.

Time is counted in halves of ``delete.retention.ms``. A tombstone's retention begins when the cleaner first passes it,
which is when the cleaner removes what the tombstone supersedes (KIP-534). Transaction markers take no offsets here,
since nothing depends on gaps.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from sink.position import TopicPartition
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.records.original import Original
from wait_registry.settings.tree import Settings

NAME: Final = TopicPartition(Settings().wait.topic, 0)
IDENTITY: Final = TopicIdentity(NAME.topic, "id", 1)
WAIT_IDS: Final = tuple(f"018bcfe5-6800-8000-8000-00000000000{number}" for number in "ab")
ORIGINAL: Final = Original("orders", 0, 0, 0, "create", None, b"", ())
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
HALF: Final = timedelta(hours=1)

WAIT, TOMBSTONE, EXPORTED = range(3)
# OPEN and above: in the transaction of that number. FOREIGN: in another client's. ELSEWHERE: in another partition.
COMMITTED, ABORTED, ELSEWHERE, FOREIGN, OPEN = range(5)
RETENTION: Final = 2
RETENTION_MS: Final = RETENTION * 3_600_000


class Entry(NamedTuple):
    """``cleaned`` is the time from which a tombstone's retention counts, -1 before; ``due``: a wait has expired."""

    kind: int
    wait_id: int
    status: int = COMMITTED
    appended: int = 0
    cleaned: int = -1
    there: bool = True
    due: bool = False


Log: TypeAlias = tuple[Entry, ...]
# The offset of each wait ID's row, -1 for none.
Rows: TypeAlias = tuple[int, ...]
# What a reader gets: offset, kind, wait ID, append time.
Records: TypeAlias = tuple[tuple[int, int, int, int], ...]


def stable_end(log: Log) -> int:
    """Return the last stable offset."""
    return next((at for at, entry in enumerate(log) if entry.status >= FOREIGN), len(log))


def records(log: Log, begin: int, end: int, committed_only: bool) -> Records:
    """Return the records of a range that a reader gets."""
    shown = (COMMITTED,) if committed_only else (COMMITTED, ABORTED, FOREIGN, OPEN, OPEN + 1)
    return tuple(
        (at, log[at].kind, log[at].wait_id, log[at].appended)
        for at in range(begin, end)
        if log[at].there and log[at].status in shown
    )


def truth(log: Log, ids: int) -> Rows:
    """Return what is open, by all that was ever committed."""
    return read_on((-1,) * ids, tuple(entry._replace(there=True) for entry in log), 0, len(log))


def read_on(rows: Rows, log: Log, begin: int, end: int) -> Rows:
    """Return what a read_committed reader makes of rows, by what is still there between two offsets."""
    found = list(rows)
    for at, kind, wait_id, _ in records(log, begin, end, committed_only=True):
        found[wait_id] = at if kind == WAIT else -1
    return tuple(found)


def with_status(log: Log, old: int, new: int) -> Log:
    """Return the log after the markers of a transaction."""
    return tuple(entry._replace(status=new) if entry.status == old else entry for entry in log)


def replaced(log: Log, at: int, entry: Entry) -> Log:
    """Return the log with another entry at an offset."""
    return (*log[:at], entry, *log[at + 1 :])


def cleaned(log: Log, wait_id: int, now: int) -> Log:
    """Return the log after the cleaner has passed the entries of an ID, below the last stable offset."""
    of_id = [at for at in range(stable_end(log)) if log[at].wait_id == wait_id and log[at].status == COMMITTED]
    for at in of_id[:-1]:
        log = replaced(log, at, log[at]._replace(there=False))
    if of_id and (last := log[of_id[-1]]).kind != WAIT:
        over = last.cleaned >= 0 and now - last.cleaned >= RETENTION
        passed = last._replace(cleaned=now if last.cleaned < 0 else last.cleaned, there=last.there and not over)
        log = replaced(log, of_id[-1], passed)
    return log


def moment(time: int) -> datetime:
    """Return a time by Postgres' clock, or the broker's."""
    return START + time * HALF
