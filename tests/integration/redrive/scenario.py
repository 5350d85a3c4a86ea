"""Dead letters in topic and tables, and a sink that reads the operations topic when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from sink.apply.applier import Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.operation_writer import OperationWriter
from sink.apply.wait_writer import WaitWriter
from sink.progress import Written
from tests.integration.sink.applying import HandFed, now_ms, row_in_the_log
from tests.support.database import Database
from tests.support.jobs import requested
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.running_thread import RunningThread
from tests.support.topics import Topics
from wait_registry.clock import SystemClock
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id, describe_topic
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.operation import Event, Kind, Place, Requested, State, decode_event
from wait_registry.records.topics import redelivery_topic
from wait_registry.records.wait_id import wait_id
from wait_registry.settings.tree import Settings
from waitreg.redrive.classifier import Classifier
from waitreg.redrive.connect_tables import require_current, require_said
from waitreg.redrive.dry_run import DryRun, classify_selection
from waitreg.redrive.exact_marks import exact_marks
from waitreg.redrive.executor import Executor
from waitreg.redrive.progress import Progress

HEADERS: Headers = (("tenant", b"blue"), ("raw", b"\xff\0"))


class Scenario:
    """One group with dead letters; `read` and `read_operations` bring the tables up to the topics' ends."""

    def __init__(self, settings: Settings, topics: Topics, database: Database) -> None:
        self.settings = settings
        self.topics = topics
        self.database = database
        self.admin = admin(settings.kafka)
        self.cluster = cluster_id(self.admin)
        (self.input,) = settings.processor.topics
        self.group = settings.processor.group
        self.target = redelivery_topic(self.input, self.group)

    def lineage(self, offset: int, **changes: Any) -> Lineage:
        """Return the lineage of the input record at an offset of partition 0."""
        first = wait_id(self.cluster, (self.input, 0, offset), self.group, 1_700_000_000_000)
        plain = Lineage(self.input, 0, offset, 1_700_000_000_000, "create", first, 1, 5, self.group, "host-1", 1)
        return plain._replace(**changes)

    def dead_letters(self, count: int, reason: Reason = Reason.FAILED, first: int = 0, **given: Any) -> list[Outgoing]:
        """Write dead letters of input records `first`, `first` + 1 ... to the topic."""
        records = []
        for offset in range(first, first + count):
            failure = Failure(reason, "builtins.ValueError", f"order {offset}", "trace", now_ms())
            headers = dead_letter_headers(HEADERS, self.lineage(offset, **given), failure)
            records.append(Outgoing(b"value %d" % offset, b"key-%d" % (offset % 3), headers))
        self.topics.produce(self.settings.dead_letter.topic, list(records))
        return records

    def show_dead_letters(self, count: int, *given: Any, **changes: Any) -> list[Outgoing]:
        """Write dead letters, and bring them into their table."""
        written = self.dead_letters(count, *given, **changes)
        self.read()
        return written

    def read(self) -> None:
        """Bring the dead letters into their table, and what was done with them."""
        self._bring(self.settings.dead_letter.topic, DeadLetterWriter())
        self.read_operations()

    def read_operations(self) -> Written | None:
        """Bring the operations topic into its tables, and return what the sink counts."""
        return self._bring(self.settings.operations.topic, OperationWriter())

    def read_waits(self) -> None:
        """Bring the wait topic into its table."""
        self._bring(self.settings.wait.topic, WaitWriter(self.settings.wait.topic))

    def _bring(self, topic: str, writer: Writer) -> Written | None:
        identity = describe_topic(self.admin, topic)
        with closing(HandFed(self.settings, topic, writer=writer, identity=identity)) as fed:
            ends = end_offsets(self.admin, topic, range(identity.partitions))
            starts = {name.partition: position.next_offset for name, position in fed.applier.positions.items()}
            records = self.topics.read(topic)
            new = [one for one in records if starts[one.partition] <= one.offset < ends[one.partition]]
            return fed.feed([row_in_the_log(one) for one in new], ends).written

    def request(self, *conditions: str, kind: Kind = Kind.REDRIVE, job: str = "job-1", **changes: object) -> DryRun:
        """Return the dry run of a job with these conditions."""
        chosen = parse_filter(conditions or (f"group={self.group}",), datetime.now(UTC))
        usual = {"job": job, "kind": kind, "rate": 500.0, "allowed": ("no_members",)}
        asked = requested(self.group, map(str, chosen.conditions), **usual).model_copy(update=changes)
        clock = SystemClock()
        require_said(self.settings, asked.allowed)
        require_current(self.settings, asked.kind, self.admin, clock)
        with exact_marks(self.settings, self.admin, clock) as marks:
            return classify_selection(asked, chosen, Classifier(self.settings, asked, self.admin), marks)

    def execute(self, job: Requested, stop: threading.Event | None = None) -> Progress:
        """Run a job to its end."""
        return Executor(self.settings, job, stop or threading.Event(), lambda _: None).run()

    def pause(self, job: Requested) -> Requested:
        """Start a job that is paused before it does anything."""
        stop = threading.Event()
        stop.set()
        assert self.execute(job, stop).state is State.PAUSED
        return job

    def start(self, job: Requested) -> RunningThread:
        """Run a job in a thread."""
        return RunningThread(Executor(self.settings, job, threading.Event(), lambda _: None).run)

    def place(self) -> Place:
        """Return the place of the first dead letter."""
        first = min(self.topics.read(self.settings.dead_letter.topic), key=lambda record: record.offset)
        return Place(*first.place)

    def sent(self) -> list[ReadRecord]:
        """Return what the redelivery topic has."""
        return self.topics.read(self.target)

    def events(self) -> list[Event]:
        """Return what the operations topic has."""
        return [decode_event(record.value) for record in self.topics.read(self.settings.operations.topic)]

    def jobs(self) -> list[Requested]:
        """Return the jobs of the operations topic."""
        return [event for event in self.events() if isinstance(event, Requested)]

    def rows(self, query: str) -> Sequence[tuple[object, ...]]:
        """Return the rows of a query."""
        return self.database.rows(self.settings, query)
