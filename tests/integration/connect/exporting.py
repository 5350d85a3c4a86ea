"""Sources over the outbox, from this project's files, with all that they leave behind removed at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import psycopg

from sweeper.due import due_row
from sweeper.export_decision import Outgoing, outgoing
from tests.support.connect_connectors import Connectors
from tests.support.database import Database
from tests.support.kafka_io import Headers, ReadRecord
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.kafka.targets import Target
from wait_registry.records.header_names import DLQ_TIME
from wait_registry.settings.tree import Settings

# A record's topic, key, value and headers.
Published = tuple[str, bytes | None, bytes | None, Headers]

DUE = """
    insert into wait (wait_expiration_uuid, original_topic, original_headers, wait_expiration_time, body,
                      dead_letter_topic, wait_topic, wait_partition, wait_offset)
    select '00000000-0000-8000-8000-' || lpad(n::text, 12, '0'), 'orders', '[]', now() - interval '1 minute',
           convert_to(n::text, 'UTF8'), %(letters)s, %(waits)s, n %% 4, n
    from generate_series(%(first)s::int, %(last)s::int) as n
"""
# No test waits for a source's pauses of seconds.
QUICK = {"heartbeat.interval.ms": "300", "retriable.restart.connector.wait.ms": "500", "slot.retry.delay.ms": "500"}
SLOTS = "select slot_name, active from pg_replication_slots where slot_name like '%%' || %s || '%%'"


class Exporting:
    """The two sources of one schema; ``started`` are the names of those that were started."""

    def __init__(self, connectors: Connectors, topics: Topics, settings: Settings) -> None:
        self.connectors = connectors
        self.settings = settings
        self.topics = topics
        self.started: list[str] = []
        self._schema = settings.postgres.schema_name
        beats = [f"waitreg.heartbeat.{self._schema}.{what}" for what in ("expired", "tombstones")]
        topics.delete_at_end(*beats)

    def start(self, connector: str = "expired.source", changes: Mapping[str, str] | None = None) -> str:
        """Start a source and return its name."""
        name = self.connectors.start(f"{connector}.debezium.json", self.settings, {**QUICK, **(changes or {})})
        self.started.append(name)
        return name

    def letters(self) -> list[ReadRecord]:
        """Return what the dead letter topic shows to readers that ask for committed records only."""
        return self.topics.read(self.settings.dead_letter.topic)

    def count_written(self) -> int:
        """Return how many dead letters were written, whatever became of their transactions."""
        return len(self.topics.read(self.settings.dead_letter.topic, "read_uncommitted"))

    def expire(self, first: int, last: int) -> None:
        """Insert registrations with these numbers as bodies that expired a minute ago."""
        with self._connect() as connection:
            topics = {"letters": self.settings.dead_letter.topic, "waits": self.settings.wait.topic}
            connection.execute(DUE, {**topics, "first": first, "last": last})

    def wait_until(self, condition: Callable[[], bool], what: str, deadline_s: float = 120) -> None:
        """Wait for a condition; AssertionError at once, with the trace, when one of the sources has failed."""

        def still_running() -> bool:
            for name in self.started:
                self.connectors.rest.runs(name)
            return condition()

        wait_until(still_running, deadline_s, what, poll_s=0.3)

    def wait_exported(self, count: int, deadline_s: float = 120) -> list[int]:
        """Wait for this number of dead letters and return the numbers in them, sorted."""
        self.wait_until(lambda: len(self.letters()) >= count, f"{count} dead letters", deadline_s)
        return sorted(int(letter.value or b"") for letter in self.letters())

    def close(self) -> None:
        """Remove connectors, replication slots (they would keep all WAL) and publications."""
        self.connectors.close()
        self.drop_slots()
        with self._connect() as connection:
            for what in ("expired", "tombstones"):
                connection.execute(f"drop publication if exists waitreg_{self._schema}_{what}".encode())

    def drop_slots(self) -> None:
        """Lose the place in the log of Postgres, as a restore does."""
        with self._connect() as connection:
            wait_until(lambda: self._drop_slots(connection), what="the end of the replication slots")

    def _drop_slots(self, connection: psycopg.Connection) -> bool:
        slots = connection.execute(SLOTS, (self._schema,)).fetchall()
        for name, active in slots:
            if not active:
                connection.execute("select pg_drop_replication_slot(%s)", (name,))
        return all(not active for _, active in slots)

    def _connect(self) -> psycopg.Connection:
        return Database(self.settings.postgres.url.get_secret_value()).connect(self.settings)


ExportingFactory = Callable[[Settings], Exporting]


def as_the_sweeper_would(rows: Sequence[dict[str, object]], settings: Settings) -> list[Published]:
    """Return the dead letters that our sweeper would write for rows of `wait`, without their time."""
    found = [outgoing(due_row({**row, "expiry_policy": "dlq"}), settings, _target, 0) for row in rows]
    assert all(isinstance(letter, Outgoing) for letter in found), found
    return [published(letter) for letter in found if isinstance(letter, Outgoing)]


def published(record: Outgoing | ReadRecord) -> Published:
    """Return a dead letter without its time."""
    headers = tuple((name, value if name != DLQ_TIME else None) for name, value in record.headers)
    return record.topic, record.key, record.value, headers


def _target(topic: str) -> Target:
    return Target(topic, 1, 2**31)
