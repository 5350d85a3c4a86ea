"""The question where partitions end, put to the broker itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from processor.assigned_partition import AssignedPartition

log = logging.getLogger(__name__)

# The consumer's only thread is held so long at most: a poll, a commit or the end may wait for it.
ROUND_S = 0.5


class LogEnds:
    """Asks partition after partition, a bounded time each round; the next round goes on where the last one stopped.

    Args:
        monotonic: measures a round, s.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left: list[AssignedPartition] = []

    def ask(self, consumer: Consumer, assigned: Iterable[AssignedPartition], wanted: Callable[[], bool]) -> None:
        """Ask for one round; a partition whose end isn't told within it has to wait for its next turn.

        Args:
            consumer: asked.
            assigned: the partitions that are ours now.
            wanted: whether to go on. While records are fetched an answer takes as long as a fetch does, and tells no
                more than that one.
        """
        ours = list(assigned)
        self._left = [owner for owner in self._left if owner in ours] or ours
        end_s = self._monotonic() + ROUND_S
        while self._left and wanted() and (left_s := end_s - self._monotonic()) > 0:
            owner = self._left.pop(0)
            try:
                partition = TopicPartition(owner.topic, owner.partition)
                owner.update_watermarks(*consumer.get_watermark_offsets(partition, timeout=left_s))
            except KafkaException as error:
                log.debug("the end of %r isn't known now: %s", owner, error)
                return
