"""One sink and one exporter, ours or Kafka Connect's, on a wait topic, dead letter topic and schema of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec
from psycopg.rows import dict_row

from tests.integration.connect.golden_corpus import Corpus, Entry, Malformed, Registration
from tests.integration.connect.golden_corpus_expectation import SELECT_ROWS, Letter, expected_letter, expected_row
from tests.support.connect_connectors import our_connector
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.kafka_io import ReadRecord
from tests.support.naming import Names
from tests.support.processes import Service, Services
from tests.support.settings import settings_against
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import PATIENCE_S
from wait_registry.cli.connect.connector_file import CONNECTORS, Role, own_files
from wait_registry.settings.root import Settings

Maker: TypeAlias = Literal["ours", "debezium"]
OURS: Maker = "ours"
DEBEZIUM: Maker = "debezium"

Rows: TypeAlias = dict[str, dict[str, Any]]

SETTINGS: Final[Mapping[str, Any]] = {
    "wait.partitions": 3,
    "wait.skew_allowance_s": 0,
    # More than a sink that was killed has to read again, and no test waits for a minute.
    "connect.settle_s": 2,
    "spark.master": "local[6]",
    "sink.poll_interval_s": 0.5,
    "sink.restart_backoff_max_s": 1,
    "sweeper.interval_s": 3,
}
# An export that is to be killed in its middle takes its time: a row a transaction of our sweeper, some rows at each
# heartbeat of a source.
SLOW_CHUNK_ROWS: Final = 1
SOURCE_CHUNK_ROWS: Final = 10
# Connectors that are as quick as a test wants them.
QUICK: Final[Mapping[str, str]] = {
    "heartbeat.interval.ms": "500",
    "retriable.restart.connector.wait.ms": "500",
    "slot.retry.delay.ms": "500",
    "flush.max.retries": "1",
    "flush.retry.delay.ms": "100",
}
# A sink's consumer that was killed is given up soon.
QUICK_SINK: Final[Mapping[str, str]] = {
    "consumer.override.session.timeout.ms": "6000",
    "consumer.override.heartbeat.interval.ms": "1000",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """What all combinations share."""

    stack: OwnStack
    topics: Topics
    database: Database
    services: Services
    directory: Path
    connect: ConnectRest


@dataclass
class Written:
    """What was written to a wait topic, and where it landed: the open registration of each ID."""

    standing: dict[str, tuple[Registration, int, int]] = field(default_factory=dict)
    malformed: dict[tuple[int, int], str] = field(default_factory=dict)
    resolved: set[str] = field(default_factory=set)

    def note(self, entry: Entry, place: tuple[int, int]) -> None:
        """Follow the log by one entry."""
        if isinstance(entry.of, Malformed):
            self.malformed[place] = entry.of.name
        elif entry.outgoing.value is None:
            self.standing.pop(entry.of.wait_id, None)
            self.resolved.add(entry.of.wait_id)
        else:
            self.standing[entry.of.wait_id] = (entry.of, *place)
            self.resolved.discard(entry.of.wait_id)


@dataclass
class Seen:
    """What was seen of one combination on the way."""

    # Rows of the table when Postgres crashed, and when the sink was killed.
    shown_at_the_crash: int = 0
    shown_at_the_sinks_end: int = 0
    # The table once it had caught up, and what was expected of it.
    rows: Rows = field(default_factory=dict)
    expected_rows: Rows = field(default_factory=dict)
    # How far the dead letter topic went when the exporter was killed, and how many dead letters were committed then.
    written_at_the_exporters_end: int = 0
    exported_at_the_exporters_end: int = 0
    # While our sink was dead and everything past its expiry: what no outbox held, and what only the log knew resolved.
    due_and_held_back: set[str] = field(default_factory=set)
    resolved_and_shown: set[str] = field(default_factory=set)
    # The names of the registrations that remained in the table.
    left_aside: list[str] = field(default_factory=list)


class Combination:
    """Who keeps the tables and who exports from them, with the log of what they were given."""

    def __init__(self, sink: Maker, exporter: Maker, stage: Stage) -> None:
        self.sink, self.exporter = sink, exporter
        self.label = f"{sink} sink, {exporter} exporter"
        self._stage = stage
        names = Names()
        self._prefix = names.prefix
        own = {"processor.topics": (), "sink.kind": "spark" if sink == OURS else "connect"}
        self.settings: Settings = settings_against(
            stage.stack.bootstrap_servers, stage.stack.postgres_url, names, {**SETTINGS, **own}
        )
        self.corpus = Corpus(self.settings.dead_letter.topic, 0)
        self.written = Written()
        self.services: dict[Role, Service] = {}
        self.seen = Seen()

    def with_chunks(self, rows: int) -> Settings:
        """Return the settings of an exporter that takes this many rows at once."""
        return self.settings.model_copy(
            update={"sweeper": self.settings.sweeper.model_copy(update={"chunk_rows": rows})}
        )

    def prepare(self) -> None:
        self._stage.topics.create_own(self.settings)
        self._stage.database.install(self.settings)

    def create_connectors(self, role: Role) -> None:
        """Create the connectors of a role; they don't run yet when this returns."""
        for path in own_files(role, "debezium"):
            found = our_connector(path, self.with_chunks(SOURCE_CHUNK_ROWS))
            quick = {name: value for name, value in QUICK.items() if name in found.config}
            quick |= QUICK_SINK if role == "sink" else {}
            self._stage.connect.put(self._name(found.name), {**found.config, **quick})

    def runs(self, role: Role) -> bool:
        """Return whether the sink or the exporter is at work; AssertionError when a process of ours has ended."""
        if self.maker(role) == DEBEZIUM:
            return all(self._stage.connect.runs(self._name(name)) for name in CONNECTORS[role])
        service = self.services[role]
        assert service.process.poll() is None, f"{self.label}: {service.log.read_text()[-3000:]}"
        return service.get("/health/ready")[0] == 200

    def connector_names(self) -> list[str]:
        """Return the names of all connectors that this combination may have."""
        roles = [role for role in CONNECTORS if self.maker(role) == DEBEZIUM]
        return [self._name(name) for role in roles for name in CONNECTORS[role]]

    def write(self, entries: Sequence[Entry]) -> None:
        places = self._stage.topics.produce(self.settings.wait.topic, [entry.outgoing for entry in entries])
        for entry, place in zip(entries, places, strict=True):
            self.written.note(entry, place)

    def resolve(self, registrations: Iterable[Registration]) -> None:
        self.write([Entry(registration, registration.tombstone()) for registration in registrations])

    def expected_rows(self) -> Rows:
        """Return the rows that the log leaves open, by wait id."""
        topic = self.settings.wait.topic
        return {wait_id: expected_row(item, topic, *place) for wait_id, (item, *place) in self.written.standing.items()}

    def rows(self) -> Rows:
        """Return the view's rows, by wait id."""
        with self._stage.database.connect(self.settings) as connection:
            rows = connection.cursor(row_factory=dict_row).execute(SELECT_ROWS.encode()).fetchall()
        return {row["wait_expiration_uuid"]: row for row in rows}

    def shown(self) -> set[str]:
        return {wait_id for (wait_id,) in self.query("select wait_expiration_uuid from wait")}

    def count(self, table: str) -> int:
        [(rows,)] = self.query(f"select count(*) from {table}")
        return int(rows)

    def query(self, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Ask this combination's schema."""
        return self._stage.database.rows(self.settings, question, *parameters)

    def expected_letters(self) -> list[Letter]:
        """Return the dead letters of all registrations that the test hasn't resolved, in the order of `letters`."""
        return ordered(expected_letter(item, *place) for item, *place in self.written.standing.values())

    def letters(self) -> list[Letter]:
        """Return the committed dead letters, each as often as it occurs."""
        return ordered(map(Letter.read, self._stage.topics.read(self.settings.dead_letter.topic)))

    def unreadable(self) -> Counter[tuple[int, int]]:
        """Return the places of the wait records that the sink has put aside, each as often as it did."""
        if self.sink == OURS:
            return Counter(self.query('select partition, "offset" from quarantine'))
        topic = f"{self.settings.wait.topic}.unreadable"
        if topic not in self._stage.topics.admin.list_topics(timeout=PATIENCE_S).topics:
            return Counter()
        found = self._stage.topics.read(topic)
        context = "__connect.errors"
        return Counter((int(one.text(f"{context}.partition")), int(one.text(f"{context}.offset"))) for one in found)

    def wait_topic(self) -> list[ReadRecord]:
        return self._stage.topics.read(self.settings.wait.topic)

    def dead_letters_written(self) -> int:
        """Return how far the dead letter topic goes, what isn't committed and transactions' markers included."""
        topic, partitions = self.settings.dead_letter.topic, self.settings.dead_letter.partitions
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        answers = self._stage.topics.admin.list_offsets(asked)
        return sum(answer.result(30).offset for answer in answers.values())

    def maker(self, role: Role) -> Maker:
        return self.sink if role == "sink" else self.exporter

    def _name(self, name: str) -> str:
        return f"{self._prefix}.{name}"


def ids(letters: Iterable[Letter]) -> Counter[str]:
    """Return the wait IDs of dead letters, each as often as it occurs."""
    return Counter((dict(letter.headers)["WAIT_EXPIRATION_UUID"] or b"").decode() for letter in letters)


def ordered(letters: Iterable[Letter]) -> list[Letter]:
    """Return dead letters in an order that doesn't depend on when they were written."""
    return sorted(letters, key=lambda letter: repr(letter.headers))
