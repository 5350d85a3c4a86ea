"""Looks at the tables again and again while a run goes on."""

from __future__ import annotations

import threading
import time

import psycopg

from tests.chaos.history.rows import View
from tests.chaos.history.tables import read_tables

ANSWER_S = 5.0


class Views:
    """Looks in a thread of its own; a context manager.

    ``taken`` has one snapshot for each look that Postgres answered, ``asked`` counts those too that it didn't.

    Args:
        postgres_url: where, not by way of a faulty link.
        schema: the schema with the tables.
        interval_s: from the end of a look to the beginning of the next one, s.
    """

    def __init__(self, postgres_url: str, schema: str, interval_s: float = 2.0) -> None:
        self.taken: list[View] = []
        self.asked = 0
        self._postgres_url = postgres_url
        self._schema = schema
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="views", daemon=True)

    def __enter__(self) -> Views:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._failure is not None and kind is None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._interval_s):
                began_ms = _now_ms()
                self.asked += 1
                try:
                    tables = read_tables(self._postgres_url, self._schema, ANSWER_S)
                except psycopg.Error:
                    continue  # away, or ended our session: that is part of the game
                self.taken.append(View(began_ms, _now_ms(), tables))
        except BaseException as error:  # noqa: BLE001 - raised where the looking ends: what it saw would be incomplete
            self._failure = error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
