"""Reads ranges of offsets by manual assignment: no member of the group, and no commit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from typing import Final

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Answer

from processor.fault import Fault
from processor.health.broker_connection import BrokerConnection
from processor.intake.assigned_log import AssignedLog
from processor.intake.consumer_thread import ConsumerThread
from processor.intake.group_config import tuning
from processor.intake.membership import Membership
from processor.intake.partition_start import Start
from processor.intake.pauses import Pauses
from processor.intake.polled_messages import PolledMessages, poll, position_error
from processor.intake.range_progress import Progress
from processor.intake.record_source import Listener
from processor.protocol.effects import Commit, Release
from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

LOG_EVERY_S: Final = 10.0
RANGE_GONE: Final = "replay what is left of the range: the log has the command for the rest"


class RangeConsumer:
    """A record source whose partitions end.

    The group's name is in the client's configuration, since its permission is there already; the client joins nothing.
    What the engine commits is the progress of the replay.

    Args:
        settings: group and cluster.
        progress: the ranges; it is moved here only.
        listener: is given the partitions, and the answers of commits.
        connection: takes the client's events.
        membership: is notified that there is something to do.
        fault: where errors are reported that end the process.
    """

    def __init__(
        self,
        settings: Settings,
        progress: Progress,
        listener: Listener,
        connection: BrokerConnection,
        membership: Membership,
        fault: Fault,
    ) -> None:
        self._progress = progress
        self._listener = listener
        self._membership = membership
        self.assigned: dict[TopicPartition, AssignedLog] = {}
        self.pending_starts: tuple[Start, ...] = ()
        self._sorted = PolledMessages(
            settings.processor.group,
            self.assigned,
            fault,
            lambda owner, message: fault.report(position_error(owner, message, what_to_do=RANGE_GONE)),
        )
        self._loop = asyncio.get_running_loop()
        self._thread = ConsumerThread()
        self._logged_s = time.monotonic()
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
        self._pauses = Pauses(self._consumer, self.assigned)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Begin to read the ranges, whatever the group's topics are."""
        starts = [
            Start(topic, partition, offsets.start, None, offsets.stop)
            for (topic, partition), offsets in self._progress.ranges.items()
        ]
        for start in starts:
            self.assigned[start[:2]] = AssignedLog(start[:2], start.offset)
        self._consumer.assign([start.for_client() for start in starts])
        self._listener.assigned(starts)
        self._membership.assigned("")

    async def poll(self, count: int, timeout_s: float) -> dict[TopicPartition, list[Message]]:
        """Return at most ``count`` records of the ranges that are there, by partition, in the consumer's thread.

        Args:
            count: how many records at most.
            timeout_s: how long to wait for the first one, s.
        """
        return self._within(await self._thread.poll(poll, self._consumer, count, timeout_s))

    @property
    def polling(self) -> bool:
        """Whether a poll runs."""
        return self._thread.polling

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """None: the ends of the ranges are known."""
        return frozenset()

    def _within(self, messages: list[Message]) -> dict[TopicPartition, list[Message]]:
        """Drop what the replay doesn't take, and fetch no more of a partition whose range was read."""
        taken: dict[TopicPartition, list[Message]] = {}
        for place, run in self._sorted.sort(messages).items():
            end = self._progress.ranges[place].stop
            takes = self._progress.takes
            if within := [each for each in run if each.offset() < end and takes(each.timestamp()[1])]:
                taken[place] = within
                self._progress.note_polled(place, within[-1].offset() + 1)
        read = [place for place, owner in self.assigned.items() if self._progress.note_read(owner)]
        if read:
            self._pauses.pause(read)
        return taken

    def commit(self, commit: Commit) -> None:
        """Note the progress, and answer as a broker does: later."""
        self._settle(commit)
        answers = [Answer(*place, offset) for place, offset in commit.offsets.items()]
        self._loop.call_soon(self._listener.commit_answered, None, answers)
        now_s = time.monotonic()
        if now_s - self._logged_s >= LOG_EVERY_S:
            self._logged_s = now_s
            log.info("%d offsets are left: %s", sum(map(len, self._progress.left().values())), self._progress.rest())

    def _settle(self, commit: Commit | Release) -> None:
        for place, offset in commit.offsets.items():
            self._progress.note_settled(place, offset)

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Stop fetching partitions."""
        self._pauses.pause(places)

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Fetch partitions again, except those whose ranges were read."""
        self._pauses.resume([place for place in places if not self._progress.is_read(place)])

    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Have a paused partition continue at an offset after `resume`."""
        self.assigned[place].rewind(offset)
        self._progress.note_rewound(place, offset)

    def read_ends(self) -> None:
        """Note the ends of the ranges, for the lag."""
        for place, owner in self.assigned.items():
            offsets = self._progress.ranges[place]
            owner.update_watermarks(offsets.start, offsets.stop)

    async def close(self, limit_s: float) -> None:
        """Give the partitions up and close the client, which has no group to leave."""
        try:
            self._settle(await self._listener.revoked(list(self.assigned)))
            self.assigned.clear()
        finally:
            await self._thread.close(self._consumer.close, limit_s)
