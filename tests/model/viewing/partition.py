"""One partition of the wait topic as compaction leaves it; time is a count of halves of delete.retention.ms.

An entry is (kind, wait id, status, time of append, time from which compaction counts a tombstone's retention or -1,
whether it is still there). A tombstone's retention begins when the cleaner first passes it, which is when it removes
what the tombstone supersedes (KIP-534).
"""

from __future__ import annotations

WAIT, TOMBSTONE = 0, 1
STANDS, ABORTED, OPEN = 0, 1, 2
RETENTION, HALF = 2, 1

KIND, ID, STATUS, TIME, CLEANED, THERE = range(6)
Entry = tuple[int, int, int, int, int, int]
Log = tuple[Entry, ...]
# The offset of each wait id's row, -1 for none.
Rows = tuple[int, ...]


def stable_end(log: Log) -> int:
    """Return the last stable offset."""
    return next((at for at, entry in enumerate(log) if entry[STATUS] == OPEN), len(log))


def truth(log: Log, ids: int) -> Rows:
    """Return what is open, by all that was ever committed."""
    rows = [-1] * ids
    for at, (kind, wait_id, status, _, _, _) in enumerate(log):
        if status == STANDS:
            rows[wait_id] = at if kind == WAIT else -1
    return tuple(rows)


def read_on(rows: Rows, log: Log, begin: int, end: int) -> Rows:
    """Return what a read_committed reader makes of rows, by what is still there between two offsets."""
    found = list(rows)
    for at in range(begin, end):
        kind, wait_id, status, _, _, there = log[at]
        if status == STANDS and there:
            found[wait_id] = at if kind == WAIT else -1
    return tuple(found)


def too_old(position: int, time: int, end: int, now: int) -> bool:
    """Return whether compaction may have removed what follows a position."""
    return position < end and now - time > HALF


def cleaned(log: Log, wait_id: int, now: int) -> Log:
    """Return the log after the cleaner has passed the entries of an id, below the last stable offset."""
    of_id = [at for at in range(stable_end(log)) if log[at][ID] == wait_id and log[at][STATUS] == STANDS]
    entries = list(log)
    for at in of_id[:-1]:
        kind, name, status, time, before, _ = log[at]
        entries[at] = (kind, name, status, time, before, 0)
    if of_id:
        kind, name, status, time, before, there = log[of_id[-1]]
        if kind == TOMBSTONE:
            over = before >= 0 and now - before >= RETENTION
            entries[of_id[-1]] = (kind, name, status, time, now if before < 0 else before, 0 if over else there)
    return tuple(entries)
