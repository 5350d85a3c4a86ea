"""Where a redriven record goes: the topic, what is sent there, and whether its group reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wait_registry.errors import DataError
from wait_registry.kafka.fenced_producer import ToSend
from wait_registry.kafka.targets import Target, record_size
from wait_registry.records.headers import Headers, decode_headers_json, require_sendable_names
from wait_registry.records.lineage import Lineage, one_more, redelivery_headers
from wait_registry.records.topics import input_of, is_topic_name, redelivery_topic
from waitreg.redrive.job_decision import Candidate, Category, Contents

# What the lineage block adds at most, with the longest names of topics and groups (255 bytes each), bytes.
LINEAGE_BYTES: Final = 4_096
ORIGIN: Final = "origin"
REDELIVERY: Final = "redelivery"


class Route:
    """Decides for one job where its records go and what keeps them from it."""

    def __init__(
        self,
        to: str,
        targets: Callable[[str], Target],
        readers: Callable[[], frozenset[str] | None],
        knows_again: Callable[[str], bool],
        may_wait: bool,
    ) -> None:
        """Decide nothing yet.

        Args:
            to: `REDELIVERY`, the topic that only the group has, or `ORIGIN`, the input topic.
            targets: looks a topic up.
            readers: returns the topics that members of the group read; None if it has no member.
            knows_again: returns whether the group takes a record of an input topic for the delivery that its lineage
                says.
            may_wait: whether records are sent while the group has no member.
        """
        self._to = to
        self._targets = targets
        self._readers = readers
        self._knows_again = knows_again
        self._may_wait = may_wait
        # By the topic to send to, and by the partition of the origin.
        self._obstacles: dict[tuple[str, int], Category | None] = {}

    def forget(self) -> None:
        """Have each topic and its readers looked up again."""
        self._obstacles.clear()

    def topic(self, candidate: Candidate) -> str:
        """Return the topic that a dead letter's record goes to."""
        assert candidate.record is not None and candidate.group is not None
        topic = candidate.record.topic
        return topic if self._to == ORIGIN else redelivery_topic(input_of(topic, candidate.group), candidate.group)

    def limits(self, topics: set[str]) -> Mapping[str, int]:
        """Return how large a record these topics take, bytes."""
        return {topic: self._targets(topic).max_message_bytes for topic in topics}

    def obstacle(self, candidate: Candidate) -> Category | None:
        """Return what keeps a record from its topic, as far as that can be known without its contents."""
        if candidate.record is None:
            return Category.FOREIGN
        to = (self.topic(candidate), candidate.record.partition if self._to == ORIGIN else 0)
        if to not in self._obstacles:
            self._obstacles[to] = self._find_obstacle(*to)
        return self._obstacles[to]

    def _find_obstacle(self, topic: str, partition: int) -> Category | None:
        target, readers = self._targets(topic), self._readers()
        if self._to != ORIGIN and not is_topic_name(target.topic):
            return Category.TARGET_UNNAMED
        if target.problem is not None:
            return Category.TARGET_MISSING
        if self._to == ORIGIN and partition >= target.partitions:
            return Category.PARTITION_MISSING
        if self._to == ORIGIN and target.compacted:
            return Category.COMPACTED
        if self._to == ORIGIN and not self._knows_again(target.topic):
            return Category.IDENTITY_LOST
        if readers is None:
            return None if self._may_wait else Category.NO_MEMBERS
        return None if target.topic in readers else Category.TARGET_UNREAD

    def surely_fits(self, candidate: Candidate) -> bool:
        """Return whether a record fits without a look at its contents."""
        target = self._targets(self.topic(candidate))
        return not target.compacted and candidate.most_bytes + LINEAGE_BYTES <= target.max_message_bytes

    def ready(self, candidate: Candidate, row: Contents, *, fits: bool = False) -> ToSend | Category:
        """Return what is sent for a dead letter, or why nothing can be.

        Args:
            candidate: the dead letter.
            row: what is sent of it.
            fits: whether it is known to be small enough.
        """
        target = self._targets(self.topic(candidate))
        try:
            headers = redelivery_headers(_original_headers(row), _next_lineage(row))
        except DataError:
            return Category.UNREADABLE
        if row.key is None and target.compacted:
            return Category.NO_KEY
        if not fits and record_size(row.key, row.body, headers) > target.max_message_bytes:
            return Category.TOO_LARGE
        partition = row.original_partition if self._to == ORIGIN else None
        return ToSend(target.topic, partition, row.key, row.body, headers)


def _original_headers(row: Contents) -> Headers:
    headers = decode_headers_json(row.headers_json.encode())
    require_sendable_names(headers)
    return headers


def _next_lineage(row: Contents) -> Lineage:
    return Lineage(
        row.original_topic,
        row.original_partition,
        row.original_offset,
        row.original_timestamp_ms,
        row.original_timestamp_type,
        row.wait_id,
        row.wait_partition,
        row.wait_offset,
        row.group,
        row.instance,
        None if row.delivery is None else one_more(row.delivery),
        idempotency_key=None if row.idempotency_key == row.wait_id else row.idempotency_key,
    )
