"""Reports which records of a run will expire, and watches the sweeper export them.

The kill of a processor alone doesn't make records expire: the group consumes those again that no commit has passed,
and settles them. While a cooperative rebalance lasts (3 s, a heartbeat of the classic protocol), no commit succeeds,
so soon no record in flight is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition

from tests.support.committed_offsets import committed
from wait_registry.demo.calls import ABORTED, read_calls
from wait_registry.demo.committed_records import read_committed, read_headers
from wait_registry.demo.platform import INPUT_PARTITIONS
from wait_registry.demo.run import Run
from wait_registry.kafka.clients import admin, consumer_config
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.dead_letter import Reason, decode_dead_letter
from wait_registry.records.wait_record import WaitRecord, decode_wait_record


def expiring(run: Run) -> set[str]:
    """Return the wait IDs that only the sweeper can settle; every processor of the run must be dead.

    A call that was answered may have a tombstone on its way to the broker.
    """
    group = run.settings.processor.group
    answered = {call.coordinates for call in read_calls(run.calls) if call.status != ABORTED}
    offsets = committed(run.settings.kafka.bootstrap_servers, group, run.topic, INPUT_PARTITIONS)
    return {
        record.wait_id
        for record in _registered(run)
        if (place := record.original).partition is not None
        and place.offset is not None
        and place.offset < offsets[place.partition]
        and (place.topic, place.partition, place.offset) not in answered
    }


def _registered(run: Run) -> Iterator[WaitRecord]:
    """Yield the run's registrations without a later entry of their ID."""
    last = {message.key(): message for message in read_committed(run.settings, run.settings.wait.topic)}
    for key, message in last.items():
        if message.value() is not None:
            record = decode_wait_record(key, message.value(), read_headers(message))
            if record.group == run.settings.processor.group:
                yield record


@contextmanager
def watched_exports(run: Run) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether an expired record of the run was written since, committed or not.

    The end of the dead letter topic's log says less: processors write there, too, when a call takes too long.
    """
    topic = run.settings.dead_letter
    ends = end_offsets(admin(run.settings.kafka), topic.topic, range(topic.partitions), "read_uncommitted")
    own = {"group.id": "waitreg-kill9", "isolation.level": "read_uncommitted", "fetch.wait.max.ms": 10}
    consumer = Consumer(consumer_config(run.settings.kafka, **own))
    try:
        consumer.assign([TopicPartition(topic.topic, number, end) for number, end in ends.items()])
        yield lambda: _polled_an_export(consumer, run.settings.processor.group)
    finally:
        consumer.close()


def _polled_an_export(consumer: Consumer, group: str) -> bool:
    message = consumer.poll(0.02)
    if message is None:
        return False
    if (error := message.error()) is not None:
        assert error.retriable(), error
        return False
    letter = decode_dead_letter(read_headers(message) or ())
    lineage, failure = letter.lineage, letter.failure
    return lineage is not None and failure is not None and (lineage.group, failure.reason) == (group, Reason.EXPIRED)
