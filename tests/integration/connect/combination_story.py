"""The story of all combinations at once, and what was seen on the way.

A first load while Postgres crashes; the tables, caught up; a second load in which the sinks are killed; tombstones that
only the log knows; the exporters, killed in mid-export; everything back, until the registry is empty.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from tests.integration.connect.combination import DEBEZIUM, OURS, SLOW_CHUNK_ROWS, Combination, Maker, Stage
from tests.integration.connect.golden_corpus import Entry, id_of, in_log_order, odd_names
from tests.support.processes import Service
from tests.support.shared_services import Kind, start_shared
from tests.support.waiting import wait_until
from wait_registry.cli.connect.connector_file import Role
from wait_registry.local.connect_worker import ConnectWorker

# Time enough to write a load, and no more: what isn't resolved is to expire soon.
FIRST_TTL_S = 10
SECOND_TTL_S = 15
SECOND_LOAD = 120
PATIENCE_S = 300.0
# Each look is a connection of its own; and one that is soon enough for a kill to hit a running export.
POLL_S = 0.3
SOON_S = 0.05

T = TypeVar("T")
Loads = Mapping[str, Sequence[Entry]]


class Story:
    """Plays the story; afterwards each combination's `seen` has what was seen of it."""

    def __init__(self, stage: Stage, worker: ConnectWorker, combinations: Sequence[Combination]) -> None:
        self._stage = stage
        self._worker = worker
        self.combinations = combinations
        self.restarted = 0.0
        self._pool = ThreadPoolExecutor(2 * len(combinations) + 1, thread_name_prefix="combination")
        self._processes: list[Service] = []
        self._over = threading.Event()

    def play(self) -> None:
        """Play all of it."""
        with self._pool:
            try:
                watch = self._open()
                self._first_load()
                self.restarted = sum(value for name, value in watch.metrics().items() if "restarts_total" in name)
                self._second_load()
                self._export()
                self._close()
            finally:
                self._over.set()

    def each(self, action: Callable[[Combination], Any]) -> None:
        """Do something with every combination at the same time."""
        list(self._pool.map(action, self.combinations))

    def _open(self) -> Service:
        """Start the sinks, and what starts failed tasks again: Kafka Connect doesn't do it itself."""
        worker = self._pool.submit(self._worker.start)
        self.each(Combination.prepare)
        self._start_ours("sink")
        worker.result()
        self._create_connectors("sink")
        names = tuple(name for one in self.combinations for name in one.connector_names())
        quick = {"url": self._worker.url, "connectors": names, "watch_interval_s": 0.5, "restart_backoff_s": 0.5}
        settings = self.combinations[0].settings
        settings = settings.model_copy(update={"connect": settings.connect.model_copy(update=quick)})
        watch = self._stage.services.start("connect", settings, "watch")
        self.each(lambda one: self._await(lambda: one.runs("sink"), f"{one.label}: its sink"))
        return watch

    def _start_ours(self, role: Role, chunk_rows: int = 100) -> None:
        """Start our sinks or our sweepers, in one process."""
        ours = [one for one in self.combinations if one.maker(role) == OURS]
        kind: Kind = "sink" if role == "sink" else "sweeper"
        started = start_shared(kind, [one.with_chunks(chunk_rows) for one in ours], self._stage.directory)
        self._processes += started
        for one, service in zip(ours, started, strict=True):
            one.services[role] = service

    def _kill_ours(self, role: Role) -> None:
        for one in self.combinations:
            if one.maker(role) == OURS:
                one.services[role].kill()
                assert one.services[role].process.returncode == -signal.SIGKILL

    def _create_connectors(self, role: Role) -> None:
        for one in self.combinations:
            if one.maker(role) == DEBEZIUM:
                one.create_connectors(role)

    def close(self) -> None:
        """End what still runs."""
        for service in self._processes:
            service.kill()

    def _first_load(self) -> None:
        """The corpus; Postgres crashes in the middle of it and comes back."""
        loads = {one.label: self._corpus(one) for one in self.combinations}
        self._write(loads, 0, 0.4)
        self.each(lambda one: self._await(lambda: one.count("wait"), f"{one.label}: rows"))
        for one in self.combinations:
            one.seen.shown_at_the_crash = one.count("wait")
        writing = self._pool.submit(self._stage.stack.postgres.kill)
        self._write(loads, 0.4, 0.7)
        writing.result()
        self._stage.stack.postgres.start()
        self._write(loads, 0.7, 1)
        self.each(self._catch_up)

    def _catch_up(self, one: Combination) -> None:
        seen, expected = one.seen, one.expected_rows()
        self._await(lambda: one.shown() == set(expected), f"{one.label}: the open rows in the table")
        seen.rows, seen.expected_rows = one.rows(), expected
        if one.maker("sink") == OURS:
            # Once it is dead an outbox gets what expired before it died, and nothing else.
            self._await(
                partial(self._saw_the_expiry, one), f"{one.label}: a sink that reads what came after the expiry"
            )

    def _saw_the_expiry(self, one: Combination) -> bool:
        [(saw,)] = one.query(
            "select min(position_time) > (select max(wait_expiration_time) from wait) from sink_progress"
        )
        return bool(saw)

    def _second_load(self) -> None:
        """The sinks are killed in the middle; what is resolved after that, only the log knows."""
        expires_at_ms = _in_ms(SECOND_TTL_S)
        loads = {
            one.label: in_log_order([*replace(one.corpus, expires_at_ms=expires_at_ms).filling("second", SECOND_LOAD)])
            for one in self.combinations
        }
        self._write(loads, 0, 0.1)
        writing = self._pool.submit(self._write, loads, 0.1, 0.5)
        first = {id_of(f"second {number}") for number in range(SECOND_LOAD // 10)}
        self.each(lambda one: self._await(lambda: first <= one.shown(), f"{one.label}: more", SOON_S))
        for one in self.combinations:
            one.seen.shown_at_the_sinks_end = one.count("wait")
        self._worker.kill()
        self._kill_ours("sink")
        writing.result()
        self._write(loads, 0.5, 1)

    def _export(self) -> None:
        """Exporters begin while our sinks are dead, and are killed in mid-export: ours and the worker independently."""
        ours, debezium = self._pool.submit(self._export_by_ours), self._pool.submit(self._export_by_the_worker)
        ours.result()
        debezium.result()

    def _export_by_ours(self) -> None:
        self._start_ours("source", SLOW_CHUNK_ROWS)
        self._kill_in_mid_export(OURS, partial(self._kill_ours, "source"))

    def _export_by_the_worker(self) -> None:
        self._worker.start()
        for one in self.combinations:
            if one.maker("sink") == one.maker("source") == DEBEZIUM:
                # A source exports what the table shows, and only our sink has a position for it.
                self._await(partial(self._shows_all, one), f"{one.label}: the whole table")
        self._create_connectors("source")
        self._kill_in_mid_export(DEBEZIUM, self._worker.kill)

    def _shows_all(self, one: Combination) -> bool:
        return one.shown() == set(one.written.standing)

    def _kill_in_mid_export(self, maker: Maker, kill: Callable[[], None]) -> None:
        exporting = [one for one in self.combinations if one.maker("source") == maker]
        for one in exporting:
            written = self._await(one.dead_letters_written, f"{one.label}: a first dead letter", SOON_S)
            one.seen.written_at_the_exporters_end = written
        kill()
        for one in exporting:
            one.seen.exported_at_the_exporters_end = len(one.letters())

    def _close(self) -> None:
        """Everything back, until nothing is left but what can't be sent."""
        self._start_ours("source")
        self._fill_outboxes_behind_dead_sinks()
        self._start_ours("sink")
        self._worker.start()
        self.each(self._finish)

    def _fill_outboxes_behind_dead_sinks(self) -> None:
        """When all is past its expiry, what our dead sink hasn't shown as resolved must not come into an outbox."""
        for one in self.combinations:
            if (one.maker("sink"), one.maker("source")) != (OURS, DEBEZIUM):
                continue
            self._await(partial(self._is_past, one), "the expiry of all")
            topics = one.settings.wait.topic, one.settings.dead_letter.topic
            one.query("select fill_expired_outbox(%s, 0, 100000, 0, %s, 1000000000)", *topics)
            filled = {wait_id for (wait_id,) in one.query("select wait_expiration_uuid from expired_outbox")}
            one.seen.due_and_held_back = one.shown() - filled
            one.seen.resolved_and_shown = one.shown() & one.written.resolved

    def _is_past(self, one: Combination) -> bool:
        return one.count("wait where wait_expiration_time >= now()") == 0

    def _finish(self, one: Combination) -> None:
        odd = odd_names(one.corpus)
        aside = {item.wait_id for item in odd}
        self._await(lambda: one.shown() <= aside, f"{one.label}: nothing but {aside} in the table")
        one.seen.left_aside = [item.name for item in odd if item.wait_id in one.shown()]
        one.resolve(odd)
        self._await(lambda: not one.count("wait"), f"{one.label}: an empty table")
        letters = len(one.letters())
        self._await(lambda: one.count("dead_letter") >= letters, f"{one.label}: dead letters")

    def _corpus(self, one: Combination) -> list[Entry]:
        corpus = replace(one.corpus, expires_at_ms=_in_ms(FIRST_TTL_S))
        return in_log_order([*corpus.registrations(), *odd_names(corpus), *corpus.malformed()])

    def _write(self, loads: Loads, begin: float, end: float) -> None:
        """Write a part of every load, from one share of it to another."""

        def write(one: Combination) -> None:
            load = loads[one.label]
            one.write(load[int(begin * len(load)) : int(end * len(load))])

        self.each(write)

    def _await(self, condition: Callable[[], T], what: str, poll_s: float = POLL_S) -> T:
        """Wait for a condition, as long as no other combination has failed."""

        def unless_over() -> T:
            assert not self._over.is_set(), "another combination has failed"
            return condition()

        return wait_until(unless_over, PATIENCE_S, what, poll_s)


def _in_ms(seconds: float) -> int:
    return time.time_ns() // 1_000_000 + int(seconds * 1000)
