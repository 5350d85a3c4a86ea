"""What a group did while faults happened, seen from outside: polls of its commits, and its topics at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from tests.chaos.history.history import Partition, Poll
from tests.chaos.history.watch import Watch
from tests.integration.processor.calls import Place
from tests.integration.processor.wait_topic import Story, stories
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

POLL_EVERY_S = 0.05


class Observation(Watch):
    """Polls one group of one input topic while it is entered; judges the topics afterwards.

    Args:
        topics: on the broker, past every faulty link.
        settings: of the group.
    """

    def __init__(self, topics: Topics, settings: Settings) -> None:
        super().__init__(settings, POLL_EVERY_S)
        self._topics = topics
        self.topic = settings.processor.topics[0]
        self.published: dict[Place, bytes | None] = {}

    def publish(self, values: Iterable[bytes]) -> list[Place]:
        """Publish records to the input topic and remember them."""
        return self._publish([Outgoing(value) for value in values])

    def _publish(self, records: list[Outgoing]) -> list[Place]:
        places = self._topics.produce(self.topic, list(records))
        self.published.update(zip(places, (record.value for record in records), strict=True))
        return places

    def publish_until(self, condition: Callable[[], object], what: str) -> None:
        """Publish a record to every partition, again and again, until the condition holds."""

        def more() -> object:
            value = b"%d" % len(self.published)
            self.publish_each(value)
            return condition()

        wait_until(more, what=what)

    def publish_each(self, value: bytes) -> list[Place]:
        """Publish one record to every partition."""
        partitions = self._topics.admin.list_topics(self.topic, timeout=30).topics[self.topic].partitions
        records = [Outgoing(value, partition=partition) for partition in partitions]
        return self._publish(records)

    def judge(self, calls: Mapping[Place, int] | None = None, *, each_once: bool = True) -> dict[Place, Story]:
        """Check what holds whatever happened, and return each registered record's story.

        Nothing that was published is missing in the wait topic, or changed; a commit never passed what wasn't
        registered when it was seen, and never went back; nothing was sent twice by one registration; a tombstone stands
        in the partition of its wait record and behind it, and says ``done`` no more often than the handler was called.

        Args:
            calls: how often the handler has begun each record; None without a count.
            each_once: whether the log has each entry as often as it was sent. A producer whose in-sync replicas die
                can't know what they have kept: it begins a new epoch and sends that again (KIP-360).
        """
        found = {
            (partition, offset): story
            for (_, partition, offset), story in stories(self._topics.read(self._settings.wait.topic)).items()
        }
        assert set(found) == set(self.published), "every published record is registered, and nothing else"
        for place, story in found.items():
            assert {wait.value for wait in story.waits} == {self.published[place]}, f"{place} is what was published"
            assert all(tombstone.offset > story.waits[0].offset for tombstone in story.tombstones), place
            assert story.resolved in (True, False)  # raises when a key has left its partition
            sent = Counter((wait.text("WAIT_INSTANCE"), wait.text("WAIT_EXPIRATION_TIME")) for wait in story.waits)
            done = story.outcomes.count("done")
            assert set(sent.values()) == {1} or not each_once, f"{place}: a registration was sent twice"
            if calls is not None:
                called = calls.get(place, 0)
                assert done <= called or (called and not each_once), f"{place}: done {done} times, called {called}"
        assert self.polls, "the group was polled"
        judge_commits(self.polls, found)
        return found


def judge_commits(polls: Iterable[Poll], found: Mapping[Place, Story]) -> None:
    """Check each poll: no commit had passed a record that wasn't registered then, and none had gone back.

    Args:
        polls: of one group of one input topic, in order.
        found: every registered record's story, by its place.
    """
    reached: dict[Partition, int] = defaultdict(int)
    for poll in polls:
        for partition, committed in poll.committed.items():
            before = reached[partition]
            assert committed >= before, f"the commit of {partition} went back from {before} to {committed}"
            for offset in range(before, committed):
                assert _registered(found.get((partition[1], offset)), poll), (
                    f"{partition} was committed up to {committed} when {offset} wasn't registered"
                )
            reached[partition] = committed


def _registered(story: Story | None, poll: Poll) -> bool:
    """Return whether a wait record of the story was in the log when the poll had seen the commits."""
    return story is not None and any(wait.offset < poll.wait_ends.get(wait.partition, 0) for wait in story.waits)
