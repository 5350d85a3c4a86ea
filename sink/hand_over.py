"""Batches on their way from Spark to Postgres: while one is written the next is read, and what waits goes together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pyarrow as pa

from sink.position import TopicPartition

# How long what has been read may wait for more of the log, so that the view follows a long catch-up and a sink that
# ends in one has come further.
GATHER_S = 5.0


@dataclass(slots=True)
class Gathered:
    """Batches in the order of reading, to be written in one transaction; ``began`` is the monotonic clock's, s."""

    began: float
    tables: list[pa.Table] = field(default_factory=list)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    records: int = 0
    nbytes: int = 0

    def add(self, batch: pa.Table, ends: Mapping[TopicPartition, int]) -> None:
        """Take in the batch that follows."""
        self.tables.append(batch)
        self.ends.update(ends)
        self.records += batch.num_rows
        self.nbytes += batch.nbytes

    def take(self) -> pa.Table:
        """Return all of it as one table, and let go of it."""
        tables, self.tables = self.tables, []
        return pa.concat_tables(tables)


Write = Callable[[Gathered], None]


class HandOver:
    """Takes batches from the thread that reads and has them written, one transaction at a time, by a thread of its own.

    While more of the log waits, batches are gathered up to a size and an age: the more are written at once, the fewer
    registrations become rows only to be deleted. What ends the writing is raised by `check`; what has been read and not
    written then is read again, from the positions in Postgres. So at most two such sizes are held, one of them being
    written.
    """

    def __init__(self, write: Write, *, max_records: int, max_bytes: int, name: str) -> None:
        """Prepare; use it as a context manager.

        ``write`` writes and commits. No more than ``max_records`` and ``max_bytes`` are gathered, unless a single batch
        is larger. What the next one doesn't fit to is written without waiting for more, and so is the smallest where
        nothing more waits.
        """
        self._write = write
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._gathered: Gathered | None = None
        self._more = False
        self._crowded = False
        self._writing = False
        self._finishing = False
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def put(self, batch: pa.Table, ends: Mapping[TopicPartition, int], began: float, *, more: bool) -> None:
        """Hand a batch over; waits while it doesn't fit to what waits already. After the end it is dropped.

        Args:
            batch: one that follows those before.
            ends: where it ends.
            began: when its reading began, monotonic clock, s.
            more: whether another batch comes soon enough to wait for.
        """
        with self._changed:
            while not self._ended and not self._finishing and not self._fits(batch):
                self._crowded = True
                self._changed.notify_all()
                self._changed.wait()
            if self._ended or self._finishing:
                return
            self._gathered = self._gathered or Gathered(began)
            self._gathered.add(batch, ends)
            self._more = more
            self._changed.notify_all()

    def finish(self, timeout_s: float) -> bool:
        """Take nothing more and have the rest written; returns whether it is, or can no longer be.

        Args:
            timeout_s: how long to wait for that; call it again for longer.
        """
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
            return self._changed.wait_for(
                lambda: self._ended or (self._gathered is None and not self._writing), timeout_s
            )

    def check(self) -> None:
        """Raise what ended the writing, if something did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Wait for what is being written; the rest is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    @property
    def _ended(self) -> bool:
        return self._closed or self._error is not None

    def _fits(self, batch: pa.Table) -> bool:
        held = self._gathered
        if held is None:
            return True
        records, nbytes = held.records + batch.num_rows, held.nbytes + int(batch.nbytes)
        return records <= self._max_records and nbytes <= self._max_bytes

    def _run(self) -> None:
        try:
            while (gathered := self._next()) is not None:
                self._write(gathered)
                with self._changed:
                    self._writing = False
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - raised by `check`, in the thread that owns the stream
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _next(self) -> Gathered | None:
        """Wait for what is to be written; None when it is over."""
        with self._changed:
            while not self._closed and (wait_s := self._wait_s()) != 0:
                self._changed.wait(wait_s)
            if self._closed:
                return None
            gathered, self._gathered = self._gathered, None
            self._crowded = False
            self._writing = True
            self._changed.notify_all()
            return gathered

    def _wait_s(self) -> float | None:
        """Return how long what was gathered may wait for more, None where there is nothing."""
        if self._gathered is None:
            return None
        if self._finishing or self._crowded or not self._more:
            return 0
        if self._gathered.records >= self._max_records or self._gathered.nbytes >= self._max_bytes:
            return 0
        return max(0.0, self._gathered.began + GATHER_S - time.monotonic())
