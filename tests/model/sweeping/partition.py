"""One partition of the wait topic, uncompacted: entries by offset, transactions among them, and the views of it.

An entry is (kind, wait id, status, whether the time of a wait is up). Offsets are places in the tuple; transaction
markers take none, since nothing here depends on the gaps.
"""

from __future__ import annotations

WAIT, TOMBSTONE, EXPORTED = 0, 1, 2
# OPEN + n: written in the transaction of the n-th transactional id. ELSEWHERE: in another partition, by mistake.
STANDS, ABORTED, ELSEWHERE, FOREIGN, OPEN = range(5)

Entry = tuple[int, int, int, int]
Log = tuple[Entry, ...]
Row = tuple[int, int]


def view_of(log: Log, position: int) -> dict[int, int]:
    """Return the view at a position: each open wait id with the offset of its wait record."""
    view: dict[int, int] = {}
    for at in range(position):
        kind, wait_id, status, _ = log[at]
        if status == STANDS:
            if kind == WAIT:
                view[wait_id] = at
            else:
                view.pop(wait_id, None)
    return view


def due_rows(log: Log, position: int) -> tuple[Row, ...]:
    """Return id and offset of the view's rows whose time is up."""
    return tuple(sorted((wait_id, at) for wait_id, at in view_of(log, position).items() if log[at][3]))


def stable_end(log: Log) -> int:
    """Return the last stable offset."""
    for at, entry in enumerate(log):
        if entry[2] >= FOREIGN:
            return at
    return len(log)


def with_status(log: Log, old: int, new: int) -> Log:
    """Return the log after the markers of a transaction."""
    return tuple([(kind, wait_id, new if status == old else status, due) for kind, wait_id, status, due in log])


def replaced(log: Log, at: int, entry: Entry) -> Log:
    """Return the log with another entry at an offset."""
    return (*log[:at], entry, *log[at + 1 :])
