"""The member of a share group (KIP-932): the broker leases records, batch by batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from processor.intake.polled_messages import PolledMessages
from processor.intake.record_source import OnRevoke, RecordSource
from processor.intake.start_decision import Start
from processor.protocol.effects import Commit, Pause, Release, Resume
from processor.protocol.events import CommitAnswered, Polled
from wait_registry.errors import PermanentError
from wait_registry.kafka.clients import share_consumer_config, usable_settings
from wait_registry.kafka.errors import is_transient
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

# While records of the last batch are open, nothing is polled; the loop only sees what has ended.
OPEN_BATCH_STEP_S: Final = 0.01
# Less may be over before the broker has answered.
LEAST_POLL_S: Final = 0.1


@dataclass(eq=False)
class ShareGroupConsumer(RecordSource):
    """A record source that polls a batch when every record of the last one is settled.

    The client refuses another poll while one record is unacknowledged. What the engine commits of a partition is
    acknowledged. Members share partitions, so a batch may hold an offset below an earlier one: then the partition is
    assigned again, as a new one.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        processor, connection = self.settings.processor, self.connection
        self._leased: dict[TopicPartition, list[Message]] = {}
        self._sorted = PolledMessages(processor.group, self.assigned, self.inbox.fault)
        config = {
            "group.id": processor.group,
            # A whole number of the producers' batches, so there may be more.
            "max.poll.records": processor.least_in_flight,
            "error_cb": connection.on_error,
            **connection.stats_config("consumer"),
        }
        with usable_settings():
            self._consumer = ShareConsumer(share_consumer_config(self.settings.kafka, **config))
        self._consumer.set_acknowledgement_commit_callback(_log_refused)

    def start(self) -> None:
        """Join the share group, for the input topics alone."""
        self._consumer.subscribe(list(self.settings.processor.topics))

    async def poll(
        self, count: int, timeout_s: float, fetching: Iterable[Pause | Resume], on_revoke: OnRevoke
    ) -> list[Polled]:
        """Return the next batch by partition, nothing while records of the last one are open.

        So there are no pauses and no revocations, and the client's property limits a batch.

        Args:
            count: without effect.
            timeout_s: how long to wait for the first record, s.
            fetching: without effect.
            on_revoke: never called.
        """
        if self._leased:
            await asyncio.sleep(min(timeout_s, OPEN_BATCH_STEP_S))
            return []
        messages = await self.thread.poll(self._poll, max(timeout_s, LEAST_POLL_S))
        if not self.membership.joined:
            self.membership.assigned()
        return self.deliveries.polled(self._lease(messages))

    def _poll(self, timeout_s: float) -> list[Message]:
        try:
            return list(self._consumer.poll(timeout_s))
        except KafkaException as error:
            if not is_transient(error.args[0]):
                raise
            log.warning("share consumer: %s", error.args[0].str())
            return []

    def _lease(self, messages: list[Message]) -> Mapping[TopicPartition, list[Message]]:
        records = [message for message in messages if message.error() is None]
        for message in sorted(records, key=Message.offset):
            self._leased.setdefault((message.topic(), message.partition()), []).append(message)
        starts = [
            Start(*place, leased[0].offset(), None, None)
            for place, leased in self._leased.items()
            if place not in self.assigned or leased[0].offset() < self.assigned[place].position
        ]
        if starts:
            self._take_over(starts)
        errors = [message for message in messages if message.error() is not None]
        return self._sorted.sort([*errors, *(message for leased in self._leased.values() for message in leased)])

    def commit(self, commit: Commit) -> None:
        """Acknowledge what is settled, and answer as a broker does: later."""
        self._accept(commit)
        self._consumer.commit_async()  # else the acknowledgments wait for the next poll
        self.inbox.put(CommitAnswered(commit.offsets, to=commit))

    def _accept(self, commit: Commit | Release) -> None:
        for place, offset in commit.offsets.items():
            leased = self._leased.pop(place, [])
            for message in leased:
                if message.offset() < offset:
                    self._consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            if rest := [message for message in leased if message.offset() >= offset]:
                self._leased[place] = rest

    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Refuse: a leased record can't be polled again, so delays are refused at the start."""
        raise PermanentError(f"a share group can't go back to offset {offset} of {place[0]}[{place[1]}]")

    async def close(self, limit_s: float, on_revoke: OnRevoke) -> None:
        """Acknowledge what is settled, release the other records for the group's other members, and leave."""
        release = await on_revoke(list(self.assigned))
        self.assigned.clear()

        def leave() -> None:
            self._accept(release)
            for message in [message for leased in self._leased.values() for message in leased]:
                self._consumer.acknowledge(message, AcknowledgeType.RELEASE)
            self._consumer.close()

        await self.thread.close(leave, limit_s)


def _log_refused(offsets: Mapping[KafkaPartition, set[int]], error: KafkaException | None) -> None:
    """Log acknowledgments that the broker refused; one for a lease that is over isn't (the client's callback)."""
    if error is not None:
        for place, numbers in offsets.items():
            log.warning(
                "%d acknowledgments of %s[%d] were refused; the broker delivers these records again: %s",
                len(numbers),
                place.topic,
                place.partition,
                error.args[0].str(),
            )
