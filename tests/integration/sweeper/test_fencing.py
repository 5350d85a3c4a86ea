"""Exported at most once and in the end exactly once, whichever sweeper is alive and whatever answer is lost (P4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from confluent_kafka import Producer

from sweeper.due import DueRow
from sweeper.export import fence
from sweeper.export_decision import Outgoing, outgoing
from sweeper.export_transaction import ExportProducer, transactional_id
from sweeper.result import PartitionResult, RowOutcome, Skip
from tests.integration.sweeper.scenario import Registered, Scenario, export_all, ids
from tests.support.kafka_io import read_all
from tests.support.tcp_proxy import END_TXN, PRODUCE, Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError
from wait_registry.kafka.targets import Target
from wait_registry.records.tombstone import Outcome, tombstone_headers


@pytest.mark.fault("F69")
def test_a_zombie_exports_nothing_after_the_export_of_another(at: Scenario) -> None:
    registered = at.due(3)
    with at.export() as zombie:
        rows = fence(zombie).snapshot().read_tail()
        assert at.sweep().counts == {"exported": 3}
        assert export_all(rows.chunks()) == {"superseded": 3}
    assert at.dead_lettered_ids() == ids(registered)


@pytest.mark.guarantee("P4.1", "C.4")
@pytest.mark.fault("F70")
def test_a_zombie_is_fenced_after_the_fence_of_another_sweeper(at: Scenario) -> None:
    registered = at.due(3)
    with at.export() as zombie, at.export() as other:
        rows = fence(zombie).snapshot().read_tail()
        others = fence(other).snapshot().read_tail()
        with pytest.raises(FencedError):
            export_all(rows.chunks())
        assert export_all(others.chunks()) == {"exported": 3}
    assert at.dead_lettered_ids() == ids(registered)


@pytest.mark.fault("F71")
def test_a_zombie_is_fenced_in_the_middle_of_its_own_export(at: Scenario) -> None:
    registered = at.due(4)
    with at.export(chunk_rows=1) as zombie, at.export() as other:
        chunks = fence(zombie).snapshot().read_tail().chunks()
        assert next(chunks).export() == {"exported": 1}
        others = fence(other).snapshot().read_tail()
        with pytest.raises(FencedError):
            next(chunks).export()
        with pytest.raises(RuntimeError, match="start again at the fence"):
            next(chunks).export()
        assert export_all(others.chunks()) == {"exported": 3, "superseded": 1}
    assert at.dead_lettered_ids() == ids(registered)


@pytest.mark.guarantee("P4.2")
def test_the_fence_comes_before_the_snapshot(at: Scenario) -> None:
    """A sweep that waits for Postgres has shut every other one out already."""
    (registered,) = at.due()
    zombie = ExportProducer(at.settings, 0)
    zombie.fence()
    results: list[PartitionResult] = []
    other = Thread(target=lambda: results.append(at.sweep()), daemon=True)
    with at.database.connect(at.settings) as connection, connection.transaction():
        connection.execute("lock table sink_progress in access exclusive mode")
        other.start()
        wait_until(lambda: waiting_for_a_lock(at), 60, "the other sweep's wait for its snapshot")
        with pytest.raises(FencedError):
            zombie.export([dead_letter_of(at, registered)], {})
    other.join(60)
    zombie.close()
    assert [result.counts[RowOutcome.EXPORTED] for result in results] == [1]
    assert at.dead_lettered_ids() == [registered.wait_id]


@pytest.mark.guarantee("P4.1")
def test_a_fence_is_recognised_between_two_batches_of_a_transaction(at: Scenario) -> None:
    """The client then calls the delivery callbacks with its own exception set, which Python reports as SystemError."""
    zombie, other = ExportProducer(at.settings, 0), ExportProducer(at.settings, 0)
    letters = [dead_letter_of(at, registered) for registered in at.due(2)]
    zombie.fence()
    other.fence()
    with pytest.raises(FencedError):
        zombie.export(letters, {letters[0].topic: 1})
    zombie.close()
    other.close()
    assert at.dead_lettered_ids() == []


def dead_letter_of(at: Scenario, item: Registered) -> Outgoing:
    row = DueRow(item.record, item.partition, item.offset)
    decided = outgoing(row, at.settings, lambda topic: Target(topic, 1, 1_000_000), 0)
    assert isinstance(decided, Outgoing)
    return decided


def waiting_for_a_lock(at: Scenario) -> bool:
    waiting = "select count(*) from pg_locks where relation = 'sink_progress'::regclass and not granted"
    return at.database.rows(at.settings, waiting) == [(1,)]


@pytest.mark.guarantee("P4.3", "P4.4")
@pytest.mark.fault("F73")
@pytest.mark.parametrize(
    ("request_type", "fate", "decided"),
    [(END_TXN, Fate.LOSE_ANSWER, 5), (END_TXN, Fate.LOSE_REQUEST, 0), (PRODUCE, Fate.LOSE_REQUEST, 0)],
    ids=["commit unanswered", "commit lost", "records lost"],
)
def test_after_a_timeout_the_next_sweep_finds_out(at: Scenario, request_type: int, fate: Fate, decided: int) -> None:
    """The broker has decided the commit and the answer is lost; or it has never heard of it. One dead letter each."""
    registered = at.due(10)
    with losing(at, request_type, fate) as through:
        timed_out = through.sweep(transaction_timeout_ms=3_000, chunk_rows=5)
    assert (timed_out.skip, timed_out.counts) == (Skip.UNAVAILABLE, {}), timed_out.reason
    again = at.sweep()
    assert again.skip is None
    assert again.counts == Counter(superseded=decided, exported=10 - decided)
    assert at.dead_lettered_ids() == ids(registered)


@contextmanager
def losing(at: Scenario, request_type: int, fate: Fate) -> Iterator[Scenario]:
    """Give a scenario whose link to the broker loses these requests or their answers; at least one must come."""
    decide = lambda api: fate if api == request_type else Fate.PASS  # noqa: E731
    with KafkaProxy(at.settings.kafka.bootstrap_servers, decide) as proxy:
        yield at.through(proxy.bootstrap_servers)
        assert proxy.lost.is_set()


@pytest.mark.guarantee("P3.4")
@pytest.mark.fault("F74")
def test_an_open_transaction_at_the_logs_end_skips_the_partition(at: Scenario) -> None:
    """What it holds may resolve the row: only its end decides."""
    resolved, expired = at.due(2)
    foreign = foreign_tombstone(at, resolved)
    waiting = at.sweep(tail_timeout_s=0.5)
    assert (waiting.skip, waiting.counts) == (Skip.OPEN_TRANSACTION, {})
    assert "open" in waiting.reason
    assert at.dead_lettered_ids() == []
    foreign.commit_transaction(15)
    done = at.sweep()
    assert (done.skip, done.counts) == (None, {"exported": 1, "superseded": 1})
    assert at.dead_lettered_ids() == [expired.wait_id]


@pytest.mark.guarantee("P4.6")
def test_an_aborted_foreign_tombstone_resolves_nothing(at: Scenario) -> None:
    """The tail then holds nothing but a transaction marker, with no record after it."""
    (expired,) = at.due()
    foreign_tombstone(at, expired).abort_transaction(15)
    assert at.sweep(tail_timeout_s=20).counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [expired.wait_id]


@pytest.mark.fault("F68")
def test_the_next_fence_aborts_a_half_written_export(at: Scenario) -> None:
    """Dead letter and tombstone are in the log, the commit never came: the fence aborts it, the row goes out once."""
    (expired,) = at.due()
    dead = foreign_tombstone(at, expired, transactional_id(at.settings.wait.topic, 0))
    assert at.sweep(tail_timeout_s=20).counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [expired.wait_id]
    committed = [record for record in at.read_wait() if record.value is None]
    uncommitted = read_all(at.settings.kafka.bootstrap_servers, at.settings.wait.topic, "read_uncommitted")
    assert (len(committed), len([record for record in uncommitted if record.value is None])) == (1, 2)
    del dead


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
    headers = tombstone_headers(Outcome.DONE)
    producer.produce(at.settings.wait.topic, None, item.wait_id.encode(), partition=item.partition, headers=headers)
    assert producer.flush(15) == 0
    return producer
