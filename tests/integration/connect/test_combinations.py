"""A sink and an exporter, one of them or both Debezium's: each open registration has one dead letter, whatever dies.

Our sink with our sweeper is what tests/chaos plays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import pytest

from tests.integration.connect.exporting import Exporting, ExportingFactory
from tests.integration.connect.sinking import Sinking, SinkingFactory
from tests.integration.sink.wait_topic import rows_of
from tests.integration.sweeper.scenario import Registered, Scenario, ids
from tests.support.connect_worker import ConnectWorker
from tests.support.processes import Service, Services
from tests.support.waiting import wait_until

Role = Literal["sink", "sweeper"]
OURS: Final = "ours"
DEBEZIUM: Final = "debezium"

FIRST, EARLY, LATE = 60, 200, 1_500
# Time enough to kill the sink and to resolve half of what it was to show.
TTL_MS = 20_000
PATIENCE_S = 180.0
SETTINGS: Mapping[str, object] = {
    "wait.partitions": 2,
    "wait.skew_allowance_s": 0,
    # More than a killed sink has to read again, and no test waits for a minute.
    "connect.settle_s": 2,
    "sink.poll_interval_s": 0.5,
    "sink.idle_progress_s": 0.5,
    "sweeper.interval_s": 2,
    # Many small exports, to be killed in the middle.
    "sweeper.chunk_rows": 20,
}


class Combination:
    """Who keeps the tables and who exports from them; what is Debezium's dies with its worker."""

    def __init__(
        self,
        makers: Mapping[Role, str],
        sinking: Sinking,
        exporting: Exporting,
        services: Services,
        worker: ConnectWorker,
    ) -> None:
        self.makers, self.exporting = makers, exporting
        self.log = Scenario(sinking.settings, sinking.topics, sinking.database)
        self._sinking, self._services, self._worker = sinking, services, worker
        self._running: dict[Role, Service] = {}

    def start(self, role: Role) -> None:
        """Start a service or the connectors in its place; a worker that was killed continues with those it had."""
        if self.makers[role] == OURS:
            self._running[role] = self._services.start(role, self.log.settings).wait_ready()
        elif not self._worker.running:
            self._worker.start()
        elif role == "sink":
            self._sinking.start("wait.sink", {"consumer.override.max.poll.records": "100"})
            self._sinking.start("dead_letter.sink")
        else:
            self.exporting.start("expired.source")
            self.exporting.start("expired.tombstones")

    def kill(self, role: Role) -> None:
        """Kill a service, or the worker with all its connectors."""
        if self.makers[role] == OURS:
            self._running[role].kill()
        else:
            self._worker.kill()

    def register(self, count: int, expires_in_ms: int, partition: int = 0) -> list[Registered]:
        records = [self.log.wait_record(number, expires_in_ms, value=b"%d" % number) for number in range(count)]
        return self.log.register(records, partition)

    def shows(self, registered: list[Registered]) -> bool:
        """Return whether the table has exactly these registrations."""
        expected = {item.wait_id: (item.partition, item.offset) for item in registered}
        return rows_of(self.log.database, self.log.settings) == expected

    def count(self, rows: str) -> int:
        [(count,)] = self.log.database.rows(self.log.settings, f"select count(*) from {rows}")
        return int(count)


@pytest.fixture(params=[(OURS, DEBEZIUM), (DEBEZIUM, OURS), (DEBEZIUM, DEBEZIUM)], ids=" and ".join)
def one(
    request: pytest.FixtureRequest,
    sinking: SinkingFactory,
    exporting_from: ExportingFactory,
    services: Services,
    connect: ConnectWorker,
) -> Iterator[Combination]:
    """A sink and an exporter, none of them started."""
    sink, exporter = request.param
    sinks = sinking({**SETTINGS, "sink.kind": "spark" if sink == OURS else "connect"})
    makers: dict[Role, str] = {"sink": sink, "sweeper": exporter}
    yield Combination(makers, sinks, exporting_from(sinks.settings), services, connect)
    if not connect.running:
        connect.start()


@pytest.mark.guarantee("C.1", "C.3", "C.4")
@pytest.mark.timeout(600)
def test_each_open_registration_is_exported_once_whatever_dies(one: Combination) -> None:
    log = one.log
    one.start("sink")
    first = one.register(FIRST, 1_000)
    wait_until(lambda: one.shows(first), what="the first rows")
    # Once our sink is dead, a source gets what had expired by its position, and nothing else.
    before = "sink_progress where position_time <= (select max(wait_expiration_time) from wait)"
    wait_until(lambda: not one.count(before), what="positions after the expiry")
    early = one.register(EARLY, TTL_MS, partition=1)
    wait_until(lambda: one.shows(first + early), what="more rows")

    late = one.register(LATE, TTL_MS)
    one.kill("sink")
    assert not one.shows(first + early + late), "it was killed too late to be in the middle"
    finished, unfinished = early[::2] + late[::2], first + early[1::2] + late[1::2]
    log.resolve(finished)  # only the log knows it
    assert {item.wait_id for item in finished} & set(rows_of(log.database, log.settings)), (
        "the table shows none as open"
    )
    wait_until(lambda: not one.count("wait where wait_expiration_time >= now()"), what="the expiry of all")

    if one.makers["sink"] == one.makers["sweeper"]:
        # A source exports what the table shows, and only our sink has a position that holds it back.
        one.start("sink")
        wait_until(lambda: one.shows(unfinished), PATIENCE_S, "the whole table")
    one.start("sweeper")
    written = wait_until(one.exporting.count_written, PATIENCE_S, "a first dead letter")
    one.kill("sweeper")
    assert written < len(unfinished), "it was killed too late to be in the middle"
    if one.makers["sink"] == OURS:
        # As a source does that runs for longer.
        fill = "select fill_expired_outbox(%s, 0, 100000, 0, %s, 1000000000)"
        log.database.rows(log.settings, fill, log.settings.wait.topic, log.settings.dead_letter.topic)
    one.start("sweeper")
    one.start("sink")
    wait_until(lambda: one.shows([]), PATIENCE_S, "an empty table")
    wait_until(lambda: one.count("dead_letter") >= len(unfinished), PATIENCE_S, "all dead letters in their table")

    assert log.dead_lettered_ids() == ids(unfinished)
    found = {letter.text("WAIT_EXPIRATION_UUID"): letter.value for letter in log.dead_letters()}
    assert found == {item.wait_id: item.record.original.value for item in unfinished}
    records = log.read_wait()
    last = {record.key: record for record in records}
    ends = {(end.value, end.headers) for end in (last[item.wait_id.encode()] for item in unfinished)}
    assert ends == {(None, (("WAIT_OUTCOME", b"expired"),))}
    assert len({(record.partition, record.key) for record in records}) == len(last), "an ID in two partitions"
    in_the_table = log.database.rows(log.settings, "select wait_expiration_uuid, reason from dead_letter")
    assert sorted(in_the_table) == [(wait_id, "expired") for wait_id in ids(unfinished)]
