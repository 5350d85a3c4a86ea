"""Looks at the tables again and again while a run goes on."""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

from tests.chaos.companion import Companion
from tests.chaos.history.rows import View
from tests.chaos.history.tables import read_tables

ANSWER_S = 5.0


class Views(Companion):
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
        super().__init__("views", interval_s, self._look)

    def _look(self) -> None:
        began_ms = _now_ms()
        self.asked += 1
        # Away, or ended our session: that is part of the game.
        with suppress(psycopg.Error):
            tables = read_tables(self._postgres_url, self._schema, ANSWER_S)
            self.taken.append(View(began_ms, _now_ms(), tables))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
