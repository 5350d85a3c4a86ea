"""Exports of a real sweeper are judged as clean, and those of a broken one are found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sweeper.due import DueRow
from sweeper.export_decision import Outgoing, Policy, outgoing
from sweeper.export_transaction import ExportProducer
from sweeper.result import RowOutcome
from tests.chaos.checker.verdict import Verdict, check
from tests.chaos.history.history import FaultDone
from tests.chaos.history.reading import read_history
from tests.chaos.history.watch import Watch
from tests.conftest import SettingsFactory
from tests.integration.sweeper.scenario import Registered, Scenario
from tests.support.database import Database
from tests.support.kafka_io import Outgoing as Written
from tests.support.kafka_io import read_all
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.demo.calls import Call
from wait_registry.demo.json_lines import JsonLines
from wait_registry.demo.load import LoadPlan, run_load
from wait_registry.demo.manifest import fingerprint
from wait_registry.kafka.targets import Target
from wait_registry.records.original import Original
from wait_registry.records.tombstone import tombstone_headers
from wait_registry.records.wait_id import wait_id

RECORDS = 6
# Long after the outcome, as a sweeper would decide that reads no tail.
LATER_MS = 5_000


class Judged:
    """One wait topic whose records are registered and expired, watched all the time."""

    def __init__(self, at: Scenario, folder: Path) -> None:
        self.at, self.folder, self.watch = at, folder, Watch(at.settings, 0)
        self.bootstrap, self.group = at.settings.kafka.bootstrap_servers, at.settings.processor.group
        self.input = at.settings.processor.topics[0]
        with JsonLines(folder / "calls.jsonl"):
            pass
        self.registered = self._register()

    def finish(self, item: Registered) -> None:
        """Do the work, and write the tombstone."""
        record, now_ms = item.record.original, time.time_ns() // 1_000_000
        body = fingerprint(None, getattr(record, "value", b"") or b"", ()).value or ""
        with JsonLines(self.folder / "calls.jsonl") as calls:
            place = (record.topic, record.partition, record.offset)
            calls.append(Call(1, now_ms, now_ms, 0.0, 0.0, item.wait_id, *place, 1, 200, body, item.wait_id))
        self.at.resolve([item])

    def letters(self, items: Sequence[Registered]) -> list[Outgoing]:
        """Return the dead letters of a sweeper that ignores the log."""
        policy, now_ms = Policy.of(self.at.settings), time.time_ns() // 1_000_000 + LATER_MS
        rows = [DueRow(item.record, item.partition, item.offset) for item in items]
        decided = [outgoing(row, policy, lambda topic: Target(topic, 2, 1_000_000), now_ms) for row in rows]
        return [letter for letter in decided if isinstance(letter, Outgoing)]

    def export(self, items: Sequence[Registered]) -> None:
        """Export them in one transaction, whatever the log says."""
        producer = ExportProducer(self.at.settings, 0)
        producer.fence()
        producer.export(self.letters(items), {})
        producer.close()

    def abort(self, items: Sequence[Registered]) -> None:
        """Export them in a transaction that is aborted."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.group})
        producer.init_transactions(30)
        producer.begin_transaction()
        for letter in self.letters(items):
            producer.produce(letter.topic, letter.value, letter.key, headers=letter.headers)
            headers = tombstone_headers(letter.outcome)
            producer.produce(self.at.settings.wait.topic, None, letter.wait_id.encode(), partition=0, headers=headers)
        producer.flush(30)
        producer.abort_transaction(30)

    def judge(self) -> Verdict:
        """Read and judge the run; the processors that registered everything are gone."""
        gone = FaultDone("kill", "group", 0, time.time_ns() // 1_000_000, "there never were any")
        history = read_history(self.at.settings, self.folder, self.watch.polls, with_tables=False)
        return check(replace(history, faults=[gone]))

    def _register(self) -> list[Registered]:
        run_load(self.at.settings, LoadPlan(self.input, RECORDS, manifest=self.folder / "manifest.jsonl"))
        cluster = self.at.admin.list_topics(self.input, timeout=15).cluster_id
        records = []
        for number, one in enumerate(read_all(self.bootstrap, self.input)):
            place = (self.input, one.partition, one.offset)
            original = Original(*place, one.timestamp_ms, "create", one.key, one.value, one.headers)
            own = wait_id(cluster, *place, self.group, one.timestamp_ms)
            records.append(self.at.wait_record(number, original=original)._replace(wait_id=own))
        return self.at.register(records)


@pytest.fixture
def run(prepared: SettingsFactory, topics: Topics, database: Database, tmp_path: Path) -> Iterator[Judged]:
    settings = prepared({"wait.partitions": 1, "wait.skew_allowance_s": 0})
    judged = Judged(Scenario(settings, topics, database), tmp_path)
    with judged.watch as watch:
        wait_until(lambda: len(watch.polls) > 0, what="a poll that shows the registrations")
        yield judged


def test_sweep_after_aborted_one_and_late_work_is_clean(run: Judged) -> None:
    run.finish(run.registered[0])
    run.at.show()
    run.abort(run.registered[1:3])
    assert run.at.sweep(chunk_rows=2).counts[RowOutcome.EXPORTED] == RECORDS - 1
    verdict = run.judge()
    assert verdict.passed, "\n".join([verdict.void, *verdict.stories()])
    figures = verdict.figures
    assert [figures[name] for name in ("records", "done", "expired", "aborted")] == [RECORDS, 1, RECORDS - 1, 2]
    assert len(run.watch.polls) > 2


def test_exports_of_a_broken_sweeper_are_found(run: Judged) -> None:
    run.finish(run.registered[0])
    run.export(run.registered[:-1])
    # These ignore the tombstones of their first export, too.
    run.export(run.registered[1:3])
    (letter,) = run.letters(run.registered[-1:])
    run.at.topics.produce(letter.topic, [Written(letter.value, letter.key, letter.headers)])
    run.abort(run.registered[-1:])
    assert run.judge().counts == {"false_export": 3, "doubled": 2, "unpaired": 1, "unfinished": 1}
