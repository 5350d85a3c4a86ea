"""A wait topic with a history, and tables that show as much of it as a test wants: a sink at any distance behind."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import psycopg
from psycopg.rows import TupleRow

from sink.apply.staging import copy_condensed
from sink.condense.condensed import condense
from sink.condense.wait_rows import COLUMNS
from sweeper.connect_policy import tables_policy
from sweeper.export import Chunk, Held, Task
from sweeper.metrics import Instruments
from sweeper.result import PartitionResult, RowOutcome
from sweeper.sweep_task import sweep_partition
from sweeper.sweeper import Job, Sweeper
from sweeper.tables_policy import Scope
from sweeper.wait_topic import WaitTopic, look_up
from tests.integration.sink.applying import row_in_the_log
from tests.support.database import Database
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.naming import Names
from tests.support.running_thread import RunningThread
from tests.support.settings import changed, settings_against, with_broker, with_postgres
from tests.support.topics import Topics
from tests.support.wait_record_encoding import encode_wait_record
from tests.unit.sink.batches import batch_of
from wait_registry.kafka.clients import admin
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import WaitRecord
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry

PAST_MS = 60_000
PAUSE_S = 0.1
DAY_MS = 86_400_000

PROGRESS = """
insert into sink_progress (topic, topic_id, partition, next_offset, position_time, seen_at)
values (%s, %s, %s, %s, clock_timestamp() - make_interval(secs => %s), clock_timestamp())
on conflict (topic, partition) do update set next_offset = excluded.next_offset,
    position_time = excluded.position_time, seen_at = excluded.seen_at
"""


@dataclass(frozen=True, slots=True)
class Registered:
    """A registration and where it landed."""

    record: WaitRecord
    partition: int
    offset: int

    @property
    def wait_id(self) -> str:
        return self.record.wait_id


def ids(registered: Iterable[Registered]) -> list[str]:
    """Return the wait IDs, sorted as `Scenario.dead_lettered_ids` are."""
    return sorted(item.wait_id for item in registered)


def in_process(scope: Scope, partitions: Sequence[int]) -> list[PartitionResult]:
    """Do the work of the Spark job without Spark."""
    return [sweep_partition(scope, partition) for partition in partitions]


def sweeper_of(
    settings: Settings, job: Job = in_process, registry: MetricsRegistry | None = None, instance: str = "this-host"
) -> Sweeper:
    """Return a sweeper without Spark."""
    instruments = Instruments(registry or MetricsRegistry())
    return Sweeper(settings, job, instruments, instance, tables=tables_policy(settings))


class Sweeping(RunningThread):
    """A sweeper without Spark at work in a thread; ``error`` is what ended it."""

    def __init__(self, settings: Settings) -> None:
        self._sweeper = sweeper_of(settings)
        self._stop = threading.Event()
        super().__init__(self._sweep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.thread.join(120)
        self._sweeper.close()

    def _sweep(self) -> None:
        while not self._stop.wait(PAUSE_S):
            self._sweeper.run_once()


def with_server_default(settings: Settings, option: str) -> Settings:
    """Return the settings with another default of the Postgres server, such as ``statement_timeout=2s``."""
    url = settings.postgres.url.get_secret_value()
    return with_postgres(settings, f"{url}{'&' if '?' in url else '?'}options=-c%20{option.replace('=', '%3D')}")


def export_all(chunks: Iterable[Chunk]) -> Counter[RowOutcome]:
    """Export chunk by chunk and return the rows by outcome."""
    counts: Counter[RowOutcome] = Counter()
    for chunk in chunks:
        counts += chunk.counts + chunk.export()
    return counts


class Scenario:
    """One wait topic, its dead letter topic and its tables."""

    def __init__(self, settings: Settings, topics: Topics, database: Database) -> None:
        self.settings = settings
        self.topics = topics
        self.database = database
        self.admin = admin(settings.kafka)

    @classmethod
    def made(cls, topics: Topics, database: Database, overrides: Mapping[str, Any]) -> Scenario:
        """Make topics and schema under names of its own."""
        settings = settings_against(topics.bootstrap, database.url, Names(), overrides)
        topics.create_own(settings)
        database.install(settings)
        return cls(settings, topics, database)

    def through(self, bootstrap: str) -> Scenario:
        """Return the same with another address of the broker."""
        return Scenario(with_broker(self.settings, bootstrap), self.topics, self.database)

    def wait_record(self, number: int = 0, expires_in_ms: int = -PAST_MS, **changes: Any) -> WaitRecord:
        """Return a registration of record ``number``; ``original`` fields may be changed by their names too."""
        original = Original(
            self.settings.processor.topics[0], 1, number, 1_700_000_000_000 + number, "create", b"key", b"value", ()
        )
        for name in [name for name in changes if name in Original._fields]:
            original = original._replace(**{name: changes.pop(name)})
        record = WaitRecord(
            original=changes.pop("original", original),
            wait_id=str(uuid.uuid4()),
            expires_at_ms=time.time_ns() // 1_000_000 + expires_in_ms,
            group=self.settings.processor.group,
            instance="host-1",
            delivery=1,
            dead_letter_topic=self.settings.dead_letter.topic,
            expiry_policy="dlq",
            max_deliveries=3,
        )
        return record._replace(**changes)

    def register(self, records: Iterable[WaitRecord], partition: int = 0, days_old: int = 0) -> list[Registered]:
        """Publish wait records as a processor does; ``days_old``: as the broker took them so long ago."""
        listed = list(records)
        wait_topic = self.settings.wait.topic
        appended_ms = time.time_ns() // 1_000_000 - days_old * DAY_MS if days_old else None
        if appended_ms is not None:
            self.topics.configure(wait_topic, "message.timestamp.type", "CreateTime")
        outgoing = []
        for record in listed:
            value, headers = encode_wait_record(record)
            outgoing.append(Outgoing(value, record.wait_id.encode(), headers, partition, appended_ms))
        places = self.topics.produce(wait_topic, list(outgoing))
        if appended_ms is not None:
            self.topics.configure(wait_topic, "message.timestamp.type", "LogAppendTime")
        return [Registered(record, *place) for record, place in zip(listed, places, strict=True)]

    def due(self, records: int | Iterable[WaitRecord] = 1) -> list[Registered]:
        """Register these records, or this many that have expired, and show them in the tables."""
        if isinstance(records, int):
            records = [self.wait_record(number) for number in range(records)]
        registered = self.register(records)
        self.show()
        return registered

    def resolve(self, registered: Iterable[Registered], outcome: Outcome = Outcome.DONE) -> None:
        """Publish tombstones as a processor does."""
        headers = tombstone_headers(outcome)
        self.topics.produce(
            self.settings.wait.topic,
            [Outgoing(None, item.wait_id.encode(), headers, item.partition) for item in registered],
        )

    def end(self, partition: int = 0) -> int:
        """Return the high watermark, once every transaction has its marker."""
        self.topics.wait_settled(self.settings.wait.topic)
        return end_offsets(self.admin, self.settings.wait.topic, [partition], "read_uncommitted")[partition]

    def show(self, up_to: int | None = None, partition: int = 0, age_s: float = 0.0) -> int:
        """Bring the tables of a partition to an offset (the end when not given), as a sink does; returns the offset.

        ``age_s`` is how old the position is.
        """
        end = self.end(partition) if up_to is None else up_to
        log = [record for record in self.read_wait() if record.partition == partition and record.offset < end]
        open_ones = {record.key: record for record in log}
        with self.database.connect(self.settings) as connection:
            connection.execute("delete from wait where wait_partition = %s", (partition,))
            for record in open_ones.values():
                if record.value is not None:
                    self.insert(connection, record)
            identity = self.topic().identity
            connection.execute(PROGRESS, (identity.topic, identity.topic_id, partition, end, age_s))
        return end

    def insert(self, connection: psycopg.Connection[TupleRow], record: ReadRecord) -> None:
        """Write a wait record's row, over an older or newer one of its id."""
        waits = condense(batch_of([row_in_the_log(record)])).waits
        connection.execute("delete from wait where wait_expiration_uuid = %s", ((record.key or b"").decode(),))
        copy_condensed(connection, "wait", COLUMNS, waits)

    def read_wait(self) -> list[ReadRecord]:
        """Return the wait topic's committed records."""
        return self.topics.read(self.settings.wait.topic)

    def dead_letters(self) -> list[ReadRecord]:
        """Return the dead letter topic's committed records."""
        return self.topics.read(self.settings.dead_letter.topic)

    def dead_lettered_ids(self) -> list[str]:
        """Return the wait ids of all committed dead letters, sorted, each as often as it occurs."""
        return sorted(record.text("WAIT_EXPIRATION_UUID") for record in self.dead_letters())

    def topic(self) -> WaitTopic:
        """Return the wait topic as a sweep finds it."""
        return look_up(self.admin, self.settings.wait)

    def sweep(self, partition: int = 0, **changes: object) -> PartitionResult:
        """Sweep one partition in this process, with settings of the sweeper changed as given."""
        (result,) = in_process(self.scope(**changes), [partition])
        if result.counts[RowOutcome.EXPORTED] or result.counts[RowOutcome.REDELIVERED]:
            for topic in (self.settings.wait.topic, self.settings.dead_letter.topic):
                self.topics.wait_settled(topic)
        return result

    @contextmanager
    def export(self, partition: int = 0, **changes: object) -> Iterator[Task]:
        """Give a task whose export is to be driven step by step."""
        with Held() as held:
            yield Task(self.scope(**changes), partition, held)

    def scope(self, **changes: object) -> Scope:
        """Return what a sweep is about, with settings of the sweeper changed as given."""
        return Scope(self.with_sweeper(**changes), self.topic(), tables_policy(self.settings))

    def with_sweeper(self, **changes: object) -> Settings:
        """Return the settings with some of the sweeper's changed."""
        return changed(self.settings, "sweeper", **changes)
