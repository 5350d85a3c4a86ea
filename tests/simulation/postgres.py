"""Postgres as sink, rebuild and sweeper see it: their queries by name, on tables that are a value.

A query that the product adds must be added here too, or a `KeyError` names it. Guards in the SQL count as far as their
text is there. A transaction is one effect from its first look at the shared tables on, since that locks the position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from psycopg import IsolationLevel, sql

from sink.condense.condensed import TOMBSTONE_COLUMNS
from sink.condense.wait_rows import COLUMNS
from sink.position import Position
from sink.progress import QUERIES as SINK
from sink.rebuild.replacement import QUERIES as REBUILD
from sweeper.due import QUERIES as SWEEPER
from tests.simulation.replay import ask
from tests.simulation.wait_log import IDENTITY, NAME, ORIGINAL, START, WAIT_IDS, Rows, moment
from tests.unit.sink.copied import SIGNATURE, TRAILER, rows_in

# Where the offset of a staged row is.
_OFFSETS = {
    "staged_wait": list(COLUMNS).index("wait_offset"),
    "staged_tombstone": list(TOMBSTONE_COLUMNS).index("last_offset"),
}
# What they do is not in the small worlds: plans, staged tables' creation, quarantine, late outcomes, counts.
_NOTHING = [
    "stage",
    "analyze_tombstones",
    "prefer_probes",
    "lock_marking",
    "mark_by_tombstones",
    "quarantine",
    "insert_late",
    "analyze",
    "keep_ages",
    "remove_moved",
]


class Tables(NamedTuple):
    """What Postgres holds of the partition."""

    position: Position | None
    rows: Rows


class Cursor:
    """What a query has found; in a ``with``, a cursor for further queries, copying and many rows."""

    def __init__(self, connection: Connection, found: Iterable[Any] = (), rowcount: int = 0) -> None:
        self._connection = connection
        self._found = list(found)
        self.rowcount = rowcount

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def execute(self, query: str, parameters: Any = None) -> Cursor:
        self._found = self._connection.execute(query, parameters).fetchall()
        return self

    def fetchone(self) -> Any:
        return self._found[0] if self._found else None

    def fetchall(self) -> list[Any]:
        return self._found

    def fetchmany(self, _: int) -> list[Any]:
        found, self._found = self._found, []
        return found

    def executemany(self, query: str, rows: Iterable[Any]) -> None:
        for row in rows:
            self._connection.execute(query, row)

    @contextmanager
    def copy(self, statement: sql.Composed) -> Iterator[_Copy]:
        table = statement.as_string().split('"')[1]
        into = _Copy(self._connection.staged[table], _OFFSETS[table])
        yield into
        self.rowcount = len(self._connection.staged[table])


class _Copy:
    def __init__(self, rows: list[tuple[int, int]], offset: int) -> None:
        self._rows = rows
        self._offset = offset

    def write(self, data: bytes) -> None:
        """Take waits, or the last offsets of tombstones; a portion has whole rows here."""
        if data in (SIGNATURE, TRAILER):
            return
        for row in rows_in([data]):
            wait_id, offset = row[0], row[self._offset]
            assert wait_id is not None and offset is not None
            self._rows.append((WAIT_IDS.index(wait_id.decode()), int.from_bytes(offset)))


class Connection:
    """The sink's and the rebuild's connection, in autocommit."""

    def __init__(self) -> None:
        self.staged: dict[str, list[tuple[int, int]]] = {"staged_wait": [], "staged_tombstone": []}
        self._rebuilt: dict[int, int] = {}
        self._draft: Tables | None = None
        self._named: dict[str, Callable[..., Cursor]] = {"commit; begin": self._commit_and_begin}
        for queries in (SINK, REBUILD):
            for name in queries.names():
                nothing = self._nothing if name in _NOTHING else None
                handler = getattr(self, f"_{name}", nothing)
                if handler is not None:
                    self._named[queries[name]] = handler

    def execute(self, query: str, parameters: Any = None) -> Cursor:
        """Do what the query of this text does."""
        return self._named[query](query, parameters)

    def cursor(self, **_: Any) -> Cursor:
        return Cursor(self)

    def close(self) -> None: ...

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._draft = None
        try:
            yield
            self._commit()
        finally:
            self._draft = None
            for rows in self.staged.values():
                rows.clear()

    def _commit(self) -> None:
        if self._draft is not None:
            ask("commit", self._draft)
        self._draft = None

    def _commit_and_begin(self, *_: Any) -> Cursor:
        self._commit()
        return Cursor(self)

    def _nothing(self, *_: Any) -> Cursor:
        return Cursor(self)

    def _locked(self) -> Tables:
        if self._draft is None:
            self._draft = ask("lock")
        return self._draft

    def _write(self, rows: Iterable[int]) -> None:
        self._draft = self._locked()._replace(rows=tuple(rows))

    # ---- sql/sink.sql

    def _now(self, *_: Any) -> Cursor:
        return Cursor(self, [(moment(ask("clock")),)])

    def _read_progress(self, *_: Any) -> Cursor:
        at: Position | None = ask("progress")
        if at is None:
            return Cursor(self)
        return Cursor(self, [(0, IDENTITY.topic_id, at.next_offset, at.position_time, at.read_until)])

    def _has_waits(self, *_: Any) -> Cursor:
        return Cursor(self, [(False,)])

    def _insert_progress(self, _: str, row: Any) -> Cursor:
        tables = self._locked()
        self._draft = tables._replace(position=tables.position or Position(*row[2:5]))
        return Cursor(self)

    def _advance(self, query: str, step: Any) -> Cursor:
        tables = self._locked()
        held = tables.position and tables.position.next_offset
        if held != step["expected"][0] and "held.next_offset = step.expected" in query:
            return Cursor(self)
        new = Position(step["next_offsets"][0], step["position_times"][0], step["read_until"][0])
        self._draft = tables._replace(position=new)
        return Cursor(self, rowcount=1)

    def _settle(self, query: str, _: Any) -> Cursor:
        rows = list(self._locked().rows)
        for wait_id, tombstone in self.staged["staged_tombstone"]:
            if rows[wait_id] < tombstone or "held.wait_offset < staged.last_offset" not in query:
                rows[wait_id] = -1
        self._write(rows)
        return Cursor(self, [(0, 0)])

    def _upsert_waits(self, query: str, _: Any) -> Cursor:
        rows = list(self._locked().rows)
        for wait_id, wait in self.staged["staged_wait"]:
            if rows[wait_id] < wait or "held.wait_offset < excluded.wait_offset" not in query:
                rows[wait_id] = wait
        self._write(rows)
        return Cursor(self)

    # ---- sql/rebuild.sql

    def _next_chunk(self, *_: Any) -> Cursor:
        for rows in self.staged.values():
            rows.clear()
        return Cursor(self)

    def _resolve(self, *_: Any) -> Cursor:
        for wait_id, tombstone in self.staged["staged_tombstone"]:
            if self._rebuilt.get(wait_id, -1) < tombstone:
                self._rebuilt.pop(wait_id, None)
        return Cursor(self)

    def _forget_renewed(self, *_: Any) -> Cursor:
        for wait_id, _offset in self.staged["staged_wait"]:
            self._rebuilt.pop(wait_id, None)
        return Cursor(self)

    def _keep(self, *_: Any) -> Cursor:
        for wait_id, offset in self.staged["staged_wait"]:
            self._rebuilt[wait_id] = offset
        return Cursor(self)

    def _compare(self, *_: Any) -> Cursor:
        return Cursor(self, [(0, 0, 0, 0)])

    def _remove_rows(self, *_: Any) -> Cursor:
        self._write([-1] * len(self._locked().rows))
        return Cursor(self)

    def _insert_rows(self, *_: Any) -> Cursor:
        self._write([self._rebuilt.get(wait_id, -1) for wait_id in range(len(self._locked().rows))])
        return Cursor(self)


class SnapshotConnection(Connection):
    """The connection of the sweeper's snapshot; its isolation level decides how many moments its queries see."""

    autocommit = True
    read_only = False
    isolation_level: Any = None

    def __init__(self) -> None:
        super().__init__()
        self._snapshot: tuple[Position, Rows, Rows] | None = None
        self._named |= {SWEEPER[name]: getattr(self, f"_{name}") for name in ("progress", "due_keys", "due_rows")}
        self._named[SWEEPER["clock"]] = self._now

    def execute(self, query: str, parameters: Any = None) -> Cursor:
        """Do what the query of this text does; time limits don't matter here."""
        return Cursor(self) if "set_config" in str(query) else super().execute(query, parameters)

    def _seen(self) -> tuple[Position, Rows, Rows]:
        if self.isolation_level is not IsolationLevel.REPEATABLE_READ:
            seen: tuple[Position, Rows, Rows] = ask("snapshot")
            return seen
        self._snapshot = self._snapshot or ask("snapshot")
        return self._snapshot

    def _progress(self, *_: Any) -> Cursor:
        position = self._seen()[0]
        return Cursor(self, [(IDENTITY.topic_id, position.next_offset, position.position_time)])

    def _due_keys(self, *_: Any) -> Cursor:
        due = self._seen()[2]
        return Cursor(self, [(WAIT_IDS[wait_id], offset, 1) for wait_id, offset in enumerate(due) if offset >= 0])

    def _due_rows(self, _: str, parameters: Any) -> Cursor:
        rows, ids = self._seen()[1], parameters["ids"]
        found = {wait_id: rows[WAIT_IDS.index(wait_id)] for wait_id in ids}
        return Cursor(self, [_columns(wait_id, offset) for wait_id, offset in found.items() if offset >= 0])


def _columns(wait_id: str, offset: int) -> dict[str, Any]:
    original = {f"original_{name}": value for name, value in ORIGINAL._asdict().items()}
    return original | {
        "original_headers": None,
        "body": b"",
        "wait_expiration_uuid": wait_id,
        "wait_expiration_time": START - timedelta(days=1),
        "consumer_group": "group",
        "instance": "instance",
        "delivery": 1,
        "dead_letter_topic": "orders.dlq",
        "expiry_policy": "dlq",
        "max_deliveries": 3,
        "redeliver_to": None,
        "idempotency_key": wait_id,
        **dict.fromkeys(("source_topic", "source_partition", "source_offset")),
        "wait_partition": NAME.partition,
        "wait_offset": offset,
    }
