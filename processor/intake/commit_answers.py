"""What a client answers to a commit, as the engine's event."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from processor.fault import Fault
from processor.protocol.effects import Commit, Release
from processor.protocol.events import CommitAnswered
from wait_registry.kafka.errors import TOPIC_GONE, is_transient, kafka_failure
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

# Part of a rebalance: the callback that follows says which partitions are revoked.
REBALANCING = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._NO_OFFSET,
        KafkaError._STATE,
        KafkaError._DESTROY,
    }
)


def commit_answer(
    error: KafkaError | None, partitions: list[KafkaPartition], fault: Fault, to: Commit | Release | None = None
) -> CommitAnswered:
    """Return the answer of a commit, each partition's by itself.

    Only a confirmation shows what the coordinator has. The client repeats a commit by itself if its answer is lost or
    says that it may be late, and returns the last answer only. So even "unknown member" may answer the repetition of a
    commit that was written.

    Args:
        error: of the whole commit, None if there is none.
        partitions: with their offsets, and their own errors.
        fault: gets a refusal that no retry fixes.
        to: the commit, if it was answered at once; the answers of the others come in the order of the commits.
    """
    confirmed: dict[TopicPartition, int] = {}
    failed: list[TopicPartition] = []
    for answer in partitions:
        refusal = error or answer.error
        place = (answer.topic, answer.partition)
        if refusal is None:
            confirmed[place] = answer.offset
            continue
        failed.append(place)
        what = f"{answer.topic}[{answer.partition}]"
        if refusal.code() in REBALANCING | TOPIC_GONE or is_transient(refusal):
            log.warning("commit of %s failed, it will be tried again: %s (%s)", what, refusal.str(), refusal.name())
        else:
            fault.report(kafka_failure(refusal, f"committing offsets of {what}"))
    return CommitAnswered(confirmed, failed, to)
