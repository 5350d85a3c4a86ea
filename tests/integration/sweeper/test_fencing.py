"""Exported at most once and in the end exactly once, whichever sweeper is alive and whatever answer is lost (P4)."""

from __future__ import annotations

from threading import Thread

import pytest
from confluent_kafka import Producer

from sweeper.due import DueRow
from sweeper.export import fence
from sweeper.fence import FencedProducer, transactional_id
from sweeper.outgoing import Outgoing, Policy, outgoing
from sweeper.result import PartitionResult, RowOutcome, Skip
from sweeper.targets import Target
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, export_all
from tests.support.kafka_io import read_all
from tests.support.tcp_proxy import END_TXN, PRODUCE, Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError, TransientError
from wait_registry.records.tombstone import Outcome, tombstone_headers


@pytest.mark.fault("F69")
def test_a_zombie_that_wakes_after_anothers_export_exports_nothing(scenario: ScenarioFactory) -> None:
    at = scenario()
    registered = at.register([at.wait_record(number) for number in range(3)])
    at.show()
    with at.export() as zombie:
        rows = fence(zombie).snapshot().read_tail()
        assert at.sweep().counts == {"exported": 3}
        assert export_all(rows.chunks()) == {"superseded": 3}
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)


@pytest.mark.guarantee("P4.1", "C.4")
@pytest.mark.fault("F70")
def test_a_zombie_that_wakes_between_anothers_fence_and_its_export_is_fenced(scenario: ScenarioFactory) -> None:
    at = scenario()
    registered = at.register([at.wait_record(number) for number in range(3)])
    at.show()
    with at.export() as zombie, at.export() as other:
        rows = fence(zombie).snapshot().read_tail()
        others = fence(other).snapshot().read_tail()
        with pytest.raises(FencedError):
            export_all(rows.chunks())
        assert export_all(others.chunks()) == {"exported": 3}
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)


@pytest.mark.fault("F71")
def test_a_zombie_is_fenced_in_the_middle_of_its_own_export(scenario: ScenarioFactory) -> None:
    at = scenario()
    registered = at.register([at.wait_record(number) for number in range(4)])
    at.show()
    with at.export(chunk_rows=1) as zombie, at.export() as other:
        chunks = fence(zombie).snapshot().read_tail().chunks()
        assert next(chunks).export() == {"exported": 1}
        others = fence(other).snapshot().read_tail()
        with pytest.raises(FencedError):
            next(chunks).export()
        with pytest.raises(RuntimeError, match="start again at the fence"):
            next(chunks).export()
        assert export_all(others.chunks()) == {"exported": 3, "superseded": 1}

    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)


@pytest.mark.guarantee("P4.2")
def test_the_fence_comes_before_the_view(scenario: ScenarioFactory) -> None:
    """A sweep that waits for Postgres has shut every other one out already."""
    at = scenario()
    (registered,) = at.register([at.wait_record(1)])
    at.show()
    zombie = FencedProducer(at.settings, 0)
    zombie.fence()
    results: list[PartitionResult] = []
    other = Thread(target=lambda: results.append(at.sweep()), daemon=True)

    with at.database.connect(at.settings) as connection, connection.transaction():
        connection.execute("lock table sink_progress in access exclusive mode")
        other.start()
        wait_until(lambda: waiting_for_a_lock(at), 60, "the other sweep's wait for its view")
        with pytest.raises(FencedError):
            zombie.export([dead_letter_of(at, registered)], {})
    other.join(60)
    zombie.close()

    assert [result.counts[RowOutcome.EXPORTED] for result in results] == [1]
    assert at.dead_lettered_ids() == [registered.wait_id]


def dead_letter_of(at: Scenario, item: Registered) -> Outgoing:
    row = DueRow(item.record, item.partition, item.offset)
    decided = outgoing(row, Policy.of(at.settings), lambda topic: Target(topic, 1, 1_000_000), 0)
    assert isinstance(decided, Outgoing)
    return decided


def waiting_for_a_lock(at: Scenario) -> bool:
    waiting = "select count(*) from pg_locks where relation = 'sink_progress'::regclass and not granted"
    return at.database.rows(at.settings, waiting) == [(1,)]


@pytest.mark.guarantee("P4.3", "P4.4")
@pytest.mark.fault("F73")
@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.LOSE_REQUEST])
def test_a_commit_that_times_out_is_unknown_and_the_next_sweep_finds_out(scenario: ScenarioFactory, fate: Fate) -> None:
    """The broker has decided the commit and the answer is lost; or it has never heard of it. One dead letter each."""
    at = scenario()
    registered = at.register([at.wait_record(number) for number in range(10)])
    at.show()

    with KafkaProxy(at.settings.kafka.bootstrap_servers, lambda api: fate if api == END_TXN else Fate.PASS) as proxy:
        timed_out = at.through(proxy.bootstrap_servers).sweep(transaction_timeout_ms=3_000, chunk_rows=5)
        assert proxy.lost.is_set()
    assert (timed_out.skip, timed_out.counts[RowOutcome.EXPORTED]) == (Skip.UNAVAILABLE, 0), timed_out.reason

    again = at.sweep()
    assert again.skip is None
    decided = 5 if fate is Fate.LOSE_ANSWER else 0
    assert (again.counts[RowOutcome.SUPERSEDED], again.counts[RowOutcome.EXPORTED]) == (decided, 10 - decided)
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)


def test_records_that_no_broker_takes_in_time_are_an_outage_and_no_refusal(scenario: ScenarioFactory) -> None:
    at = scenario()
    registered = at.register([at.wait_record(number) for number in range(2)])
    at.show()
    lose = lambda api: Fate.LOSE_REQUEST if api == PRODUCE else Fate.PASS  # noqa: E731
    with KafkaProxy(at.settings.kafka.bootstrap_servers, lose) as proxy:
        timed_out = at.through(proxy.bootstrap_servers).sweep(transaction_timeout_ms=2_000)
        assert proxy.lost.is_set()
    assert (timed_out.skip, timed_out.counts[RowOutcome.EXPORTED]) == (Skip.UNAVAILABLE, 0), timed_out.reason
    assert at.sweep().counts[RowOutcome.EXPORTED] == 2
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)


@pytest.mark.guarantee("P3.4")
@pytest.mark.fault("F74")
def test_an_open_foreign_transaction_at_the_logs_end_leaves_the_partition(scenario: ScenarioFactory) -> None:
    """What it holds may resolve the row: only its end decides."""
    at = scenario()
    resolved, expired = at.register([at.wait_record(1), at.wait_record(2)])
    at.show()
    foreign = foreign_tombstone(at, resolved)

    waiting = at.sweep(tail_timeout_s=0.5)
    assert (waiting.skip, waiting.counts[RowOutcome.EXPORTED]) == (Skip.OPEN_TRANSACTION, 0)
    assert "open" in waiting.reason
    assert at.dead_lettered_ids() == []

    foreign.commit_transaction(15)
    done = at.sweep()
    assert (done.skip, done.counts[RowOutcome.EXPORTED], done.counts[RowOutcome.SUPERSEDED]) == (None, 1, 1)
    assert at.dead_lettered_ids() == [expired.wait_id]


@pytest.mark.guarantee("P4.6")
def test_an_aborted_foreign_tombstone_resolves_nothing(scenario: ScenarioFactory) -> None:
    """The tail then holds nothing but a transaction marker, which no record stands behind."""
    at = scenario()
    (expired,) = at.register([at.wait_record(1)])
    at.show()
    foreign_tombstone(at, expired).abort_transaction(15)

    assert at.sweep(tail_timeout_s=20).counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [expired.wait_id]


@pytest.mark.fault("F68")
def test_a_half_written_export_of_a_dead_sweeper_is_aborted_by_the_next_fence(scenario: ScenarioFactory) -> None:
    """Dead letter and tombstone are in the log, the commit never came: the fence aborts it, the row goes out once."""
    at = scenario()
    (expired,) = at.register([at.wait_record(1)])
    at.show()
    dead = foreign_tombstone(at, expired, transactional_id(at.settings.wait.topic, 0))

    assert at.sweep(tail_timeout_s=20).counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [expired.wait_id]
    committed = [record for record in at.read_wait() if record.value is None]
    uncommitted = read_all(at.settings.kafka.bootstrap_servers, at.settings.wait.topic, "read_uncommitted")
    assert (len(committed), len([record for record in uncommitted if record.value is None])) == (1, 2)
    del dead


def test_a_producer_is_never_used_again_after_an_error(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(number) for number in range(2)])
    at.show()
    with KafkaProxy(
        at.settings.kafka.bootstrap_servers, lambda api: Fate.LOSE_REQUEST if api == END_TXN else Fate.PASS
    ) as proxy:
        with at.through(proxy.bootstrap_servers).export(transaction_timeout_ms=1_000, chunk_rows=1) as task:
            chunks = fence(task).snapshot().read_tail().chunks()
            with pytest.raises(TransientError):
                next(chunks).export()
            with pytest.raises(RuntimeError, match="start again at the fence"):
                next(chunks).export()
    # Its transaction is left open, so nothing is waited for.
    assert read_all(at.settings.kafka.bootstrap_servers, at.settings.dead_letter.topic) == []


def foreign_tombstone(at: Scenario, item: Registered, transaction: str = "") -> Producer:
    """Write a tombstone in a transaction that stays open; returns its producer."""
    producer = Producer(
        {
            "bootstrap.servers": at.settings.kafka.bootstrap_servers,
            "transactional.id": transaction or f"{at.settings.wait.topic}.foreign",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(15)
    producer.begin_transaction()
    producer.produce(
        at.settings.wait.topic,
        None,
        item.wait_id.encode(),
        partition=item.partition,
        headers=tombstone_headers(Outcome.DONE),
    )
    assert producer.flush(15) == 0
    return producer
