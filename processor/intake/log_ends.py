"""Asks the broker for the ends of partitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from processor.intake.assigned_log import AssignedLog

log = logging.getLogger(__name__)

# The limit for holding the consumer's only thread: a poll, a commit or the shutdown may wait for it.
ROUND_S = 0.5


class LogEnds:
    """Asks for one partition after another, with a time limit per round; the next round continues there.

    Args:
        monotonic: measures a round, s.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left: list[AssignedLog] = []

    def ask(self, consumer: Consumer, assigned: Iterable[AssignedLog], wanted: Callable[[], bool]) -> None:
        """Ask for one round; a partition without an answer waits for a later round.

        Args:
            consumer: the client that asks.
            assigned: the assigned partitions.
            wanted: returns whether to continue. While records are fetched, an answer takes as long as a fetch, which
                returns the ends too.
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
