"""Offset commits: asynchronous, and one in flight at most."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from processor.assigned_partition import AssignedPartition
from processor.ending import Fault
from processor.stats import Stats
from wait_registry.clock import Clock
from wait_registry.kafka.errors import is_transient, kafka_failure

log = logging.getLogger(__name__)

# A commit whose answer is lost (the connection broke) must not stop all further commits.
ANSWER_LIMIT_S = 30.0

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

Send = Callable[[dict[AssignedPartition, int]], None]


class Commits:
    """Commits the committable offset of each partition.

    Only a confirmation shows what the coordinator has. The client repeats a commit by itself if its answer is lost or
    says that it may be late, and returns the last answer only. So even "unknown member" may answer the repetition of a
    commit that was written, and every requested offset may be committed: ``requested``.

    Args:
        send: starts an asynchronous commit; the answer comes to `answered`.
        interval_s: pause between commits, s.
        confirmed: called with each partition whose commit the broker has confirmed.
    """

    def __init__(
        self,
        send: Send,
        interval_s: float,
        clock: Clock,
        fault: Fault,
        stats: Stats,
        confirmed: Callable[[AssignedPartition], None],
    ) -> None:
        self.send = send
        self._interval_s = interval_s
        self._monotonic = clock.monotonic
        self._now_ms = clock.now_ms
        self._fault = fault
        self._stats = stats
        self._confirmed = confirmed
        self._in_flight: dict[AssignedPartition, int] = {}
        self._sent_s = -math.inf

    def due(self, now_s: float) -> bool:
        """Return whether the interval has passed and no commit is in flight."""
        waited_s = now_s - self._sent_s
        return waited_s >= self._interval_s and (not self._in_flight or waited_s >= ANSWER_LIMIT_S)

    @property
    def idle(self) -> bool:
        """Whether no commit is in flight."""
        return not self._in_flight

    def commit(self, owners: Iterable[AssignedPartition]) -> None:
        """Request the committable offsets that are ahead of the confirmed ones; do nothing if there are none."""
        targets = {owner: owner.committable for owner in owners if owner.committable > owner.confirmed}
        if not targets:
            return
        self._sent_s = self._monotonic()
        try:
            self.send(targets)
        except KafkaException as error:
            self._failed(error.args[0], "all partitions")
            return
        # A commit without an answer for too long is forgotten here; ``requested`` says that it may be done.
        self._in_flight = targets
        for owner, target in targets.items():
            owner.requested = max(owner.requested, target)

    def answered(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Take the answer of an asynchronous commit (the client's ``on_commit``), each partition's by itself.

        Answers to superseded commits are ignored; their offset differs.
        """
        committed = {(p.topic, p.partition): p for p in partitions}
        for owner, target in list(self._in_flight.items()):
            answer = committed.get((owner.topic, owner.partition))
            if (answer is None or answer.offset != target) and (partitions or error is None):
                continue
            del self._in_flight[owner]
            refusal = error or (answer.error if answer is not None else None)
            if refusal is None:
                self.confirm(owner, target)
            else:
                self._failed(refusal, repr(owner))

    def confirm(self, owner: AssignedPartition, offset: int) -> None:
        """Note that the broker has committed an offset."""
        owner.requested = max(owner.requested, offset)
        owner.confirmed = max(owner.confirmed, offset)
        self._stats.committed(self._now_ms())
        self._confirmed(owner)

    def _failed(self, error: KafkaError, what: str) -> None:
        self._stats.commits["failed"] += 1
        if error.code() in REBALANCING or is_transient(error):
            log.warning("commit of %s failed, it will be tried again: %s (%s)", what, error.str(), error.name())
        else:
            self._fault.report(kafka_failure(error, f"committing offsets of {what}"))
