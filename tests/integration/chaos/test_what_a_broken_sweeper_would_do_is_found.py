"""Exports in real transactions: those of our sweeper are judged as clean, those of a broken one are found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from sweeper.due import DueRow
from sweeper.fence import FencedProducer
from sweeper.outgoing import Outgoing, Policy, outgoing
from sweeper.result import RowOutcome
from sweeper.targets import Target
from tests.chaos.checker.verdict import Verdict, check
from tests.chaos.checker.violation import Kind
from tests.chaos.history.history import FaultDone, Limits, Look
from tests.chaos.history.reading import Where, read_history
from tests.chaos.history.watch import Watch
from tests.conftest import SettingsFactory
from tests.integration.sweeper.scenario import Registered, Scenario
from tests.support.committed_offsets import commit_as_operator
from tests.support.database import Database
from tests.support.kafka_io import Outgoing as Written
from tests.support.kafka_io import read_all
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.demo.calls import Call
from wait_registry.demo.json_lines import JsonLines
from wait_registry.demo.load import LoadPlan, run_load
from wait_registry.demo.manifest import fingerprint
from wait_registry.records.original import Original
from wait_registry.records.tombstone import tombstone_headers
from wait_registry.records.wait_id import wait_id

RECORDS = 6
# As a sweeper would decide that reads no tail: long after the outcome.
LATER_MS = 5_000


class Judged:
    """One wait topic whose records are registered and expired, watched all the time."""

    def __init__(self, at: Scenario, folder: Path) -> None:
        self.at = at
        self.where = Where.of(at.settings, folder)
        self.calls = JsonLines(folder / "calls.jsonl")
        self.registered = self._register()
        self.looks: list[Look] = []

    def finish(self, item: Registered) -> None:
        """Do the work, and say so in the wait topic."""
        record, now_ms = item.record.original, time.time_ns() // 1_000_000
        assert isinstance(record, Original)
        body = fingerprint(None, record.value or b"", ()).value or ""
        place = (record.topic, record.partition, record.offset)
        self.calls.append(Call(1, now_ms, now_ms, 0.0, 0.0, item.wait_id, *place, 1, 200, body))
        self.at.resolve([item])

    def letters(self, items: Sequence[Registered]) -> list[Outgoing]:
        """Return the dead letters that a sweeper makes of these which doesn't look at the log."""
        policy, now_ms = Policy.of(self.at.settings), time.time_ns() // 1_000_000 + LATER_MS
        rows = [DueRow(item.record, item.partition, item.offset) for item in items]
        decided = [outgoing(row, policy, lambda topic: Target(topic, 2, 1_000_000), now_ms) for row in rows]
        return [letter for letter in decided if isinstance(letter, Outgoing)]

    def export(self, items: Sequence[Registered]) -> None:
        """Export them in one transaction, whatever the log says."""
        producer = FencedProducer(self.at.settings, 0)
        producer.fence()
        producer.export(self.letters(items), {})
        producer.close()

    def abort(self, items: Sequence[Registered]) -> None:
        """Export them in a transaction that is given up."""
        producer = Producer({"bootstrap.servers": self.where.bootstrap, "transactional.id": self.where.group})
        producer.init_transactions(30)
        producer.begin_transaction()
        for letter in self.letters(items):
            producer.produce(letter.topic, letter.value, letter.key, headers=letter.headers)
            stone = tombstone_headers(letter.outcome)
            producer.produce(self.where.wait_topic, None, letter.wait_id.encode(), partition=0, headers=stone)
        producer.flush(30)
        producer.abort_transaction(30)

    def judge(self) -> Verdict:
        """Read and judge it as it stands; the processors that registered it all are gone."""
        gone = FaultDone("kill", "group", 0, time.time_ns() // 1_000_000, "there never were any")
        return check(read_history(self.where, self.looks, faults=[gone], limits=Limits(9, 9, 1), look_at_view=False))

    def _register(self) -> list[Registered]:
        (topic,) = self.where.inputs
        run_load(self.at.settings, LoadPlan(topic, RECORDS, manifest=self.where.manifest))
        cluster = self.at.admin.list_topics(topic, timeout=15).cluster_id
        records = []
        for number, read in enumerate(read_all(self.where.bootstrap, topic)):
            original = Original(
                topic, read.partition, read.offset, read.timestamp_ms, "create", read.key, read.value, read.headers
            )
            own = wait_id(cluster, *original[:3], self.where.group, read.timestamp_ms)
            records.append(self.at.wait_record(number, original=original)._replace(wait_id=own))
        return self.at.register(records)

    def commit(self) -> None:
        """Commit behind all of them, as a processor may now."""
        ends: dict[int, int] = {}
        for item in self.registered:
            original = item.record.original
            assert isinstance(original, Original)
            ends[original.partition] = max(ends.get(original.partition, 0), original.offset + 1)
        offsets = [TopicPartition(self.where.inputs[0], partition, end) for partition, end in ends.items()]
        commit_as_operator(self.where.bootstrap, self.where.group, offsets)


@pytest.fixture
def run(prepared: SettingsFactory, topics: Topics, database: Database, tmp_path: Path) -> Iterator[Judged]:
    settings = prepared({"wait.partitions": 1, "wait.skew_allowance_s": 0})
    judged = Judged(Scenario(settings, topics, database), tmp_path)
    where = judged.where
    with Watch(where, 0) as it:
        judged.looks = it.looks
        wait_until(lambda: len(it.looks) > 0, what="a look at the registrations")
        judged.commit()
        yield judged
    judged.calls.__exit__(None, None, None)


def found(verdict: Verdict) -> dict[Kind, int]:
    return {kind: count for kind, count in verdict.counts.items() if count}


def test_a_sweep_after_an_aborted_one_and_late_work_is_clean(run: Judged) -> None:
    run.finish(run.registered[0])
    run.at.show()
    run.abort(run.registered[1:3])
    assert run.at.sweep(chunk_rows=2).counts[RowOutcome.EXPORTED] == RECORDS - 1
    verdict = run.judge()
    assert verdict.passed, "\n".join([verdict.void, *verdict.stories()])
    figures = verdict.figures
    assert (figures["records"], figures["done"], figures["expired"]) == (RECORDS, 1, RECORDS - 1)
    assert (figures["aborted"], figures["looks"] > 2) == (2, True)


def test_an_export_of_what_was_done_is_found(run: Judged) -> None:
    run.finish(run.registered[0])
    run.export(run.registered)
    assert found(run.judge()) == {Kind.FALSE_EXPORT: 1}


def test_an_export_made_twice_is_found(run: Judged) -> None:
    run.export(run.registered)
    run.export(run.registered[:2])
    # The second one also ignores the tombstone of the first.
    assert found(run.judge()) == {Kind.DOUBLED: 2, Kind.FALSE_EXPORT: 2}


def test_an_export_of_which_half_was_aborted_is_found(run: Judged) -> None:
    run.export(run.registered[1:])
    (letter,) = run.letters(run.registered[:1])
    run.at.topics.produce(letter.topic, [Written(letter.value, letter.key, letter.headers)])
    run.abort(run.registered[:1])
    assert found(run.judge()) == {Kind.UNPAIRED: 1, Kind.UNFINISHED: 1}
