"""Reads ranges of offsets by manual assignment: no member of the group, and no commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, Message

from processor.intake.group_config import tuning
from processor.intake.pauses import Pauses
from processor.intake.polled_messages import PolledMessages, position_error
from processor.intake.poller import Poller
from processor.intake.record_source import OnRevoke, RecordSource
from processor.intake.replay_progress import ReplayProgress
from processor.intake.start_decision import Start
from processor.protocol.effects import Commit, Pause, Release, Resume
from processor.protocol.events import CommitAnswered, Polled
from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.records.topics import TopicPartition

RANGE_GONE: Final = "replay what is left of the range: the log has the command for the rest"


@dataclass(eq=False)
class ReplayConsumer(RecordSource):
    """A record source whose partitions end.

    The group's name is in the client's configuration, since its permission is there already; the client joins nothing.
    What the engine commits is the progress of the replay.

    Args:
        progress: the ranges; it is moved here only.
    """

    progress: ReplayProgress

    def __post_init__(self) -> None:
        super().__post_init__()
        settings, connection, fault = self.settings, self.connection, self.inbox.fault
        polled = PolledMessages(
            settings.processor.group,
            self.assigned,
            fault,
            lambda owner, message: fault.report(position_error(owner, message, what_to_do=RANGE_GONE)),
        )
        config = {
            **tuning(settings),
            "group.id": settings.processor.group,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "error_cb": connection.on_error,
            **connection.stats_config("consumer"),
        }
        with usable_settings():
            self._consumer = Consumer(consumer_config(settings.kafka, **config))
        self._poller = Poller(self._consumer, self.thread, polled, self.gathering)
        self._pauses = Pauses(self._consumer, self.assigned)

    def start(self) -> None:
        """Begin to read the ranges."""
        starts = [
            Start(topic, partition, offsets.start, None, offsets.stop)
            for (topic, partition), offsets in self.progress.ranges.items()
        ]
        self._take_over(starts)
        for place, offsets in self.progress.ranges.items():
            self.assigned[place].update_watermarks(offsets.start, offsets.stop)
        self._consumer.assign([start.for_client() for start in starts])
        self.membership.assigned()

    async def poll(
        self, count: int, timeout_s: float, fetching: Iterable[Pause | Resume], on_revoke: OnRevoke
    ) -> list[Polled]:
        """Return records of the ranges, as `RecordSource.poll`; nothing is revoked meanwhile."""
        for request in fetching:
            if isinstance(request, Pause):
                self._pauses.pause(request.places)
            else:
                self._pauses.resume([place for place in request.places if not self.progress.is_read(place)])
        return self.deliveries.polled(self._within(await self._poller.poll(count, timeout_s)))

    def _within(self, polled: dict[TopicPartition, list[Message]]) -> dict[TopicPartition, list[Message]]:
        """Drop what the replay doesn't take, and fetch no more of a partition whose range was read."""
        within: dict[TopicPartition, list[Message]] = {}
        for place, run in polled.items():
            end = self.progress.ranges[place].stop
            takes = self.progress.takes
            if records := [each for each in run if each.offset() < end and takes(each.timestamp()[1])]:
                within[place] = records
                self.progress.note_polled(place, records[-1].offset() + 1)
        read = [place for place, owner in self.assigned.items() if self.progress.note_read(owner)]
        if read:
            self._pauses.pause(read)
        return within

    def commit(self, commit: Commit) -> None:
        """Note the progress, and answer as a broker does: later."""
        self._settle(commit)
        self.inbox.put(CommitAnswered(commit.offsets, to=commit))
        self.progress.log_left()

    def _settle(self, commit: Commit | Release) -> None:
        for place, offset in commit.offsets.items():
            self.progress.note_settled(place, offset)

    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Have a partition, which is to be paused, continue at an offset when it is fetched again."""
        self.assigned[place].rewind(offset)
        self.progress.note_rewound(place, offset)

    async def close(self, limit_s: float, on_revoke: OnRevoke) -> None:
        """Give the partitions up and close the client, which has no group to leave."""
        try:
            self._settle(await on_revoke(list(self.assigned)))
            self.assigned.clear()
        finally:
            await self.thread.close(self._consumer.close, limit_s)
