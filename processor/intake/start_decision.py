"""Where one partition starts, and what its commits say."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING
from confluent_kafka import TopicPartition as KafkaPartition

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.commit_metadata import CommitMetadata


class Start(NamedTuple):
    """Where a partition starts: the committed offset (None: at its beginning), its metadata, and the end of the log.

    Metadata and end are None if they are unknown. ``commits`` is what each commit of this assignment says, besides what
    it says of the process; None if the source commits nothing. ``moved`` is whether it isn't the committed offset.
    """

    topic: str
    partition: int
    offset: int | None
    recorded: CommitMetadata | None
    end: int | None
    commits: CommitMetadata | None = None
    moved: bool = False

    @property
    def emptied_id(self) -> str | None:
        """The ID of the topic if what is committed of it was handled by this group, None otherwise."""
        return None if self.commits is None or self.commits.kept_below is not None else self.commits.input_topic_id

    def corrected(self) -> str | None:
        """Return the metadata of a commit that is due at this offset, None if the last one is the same."""
        now, then = self.commits, self.recorded
        if self.offset is None or now is None or then is None:
            return None
        if not self.moved and now.redeliver_to == then.redeliver_to:
            return None
        return now.with_recorded(then.uncommitted_max, then.registration).encode(self.offset)

    def for_client(self) -> KafkaPartition:
        """Return it as the client takes it."""
        return KafkaPartition(self.topic, self.partition, OFFSET_BEGINNING if self.offset is None else self.offset)


def own_start(start: Start, first: int | None) -> tuple[Start, str | None]:
    """Decide where a partition of a retry or redelivery topic starts, whatever was done to its log or its offset.

    Such a topic holds what this group wrote to it, less what the group has handled. So all that it holds may be
    handled, and no start has to wait for a person.

    Args:
        start: at the committed offset.
        first: the first offset in the log, None if it is unknown.

    Returns:
        The start, and what an operator must know of it, as the rest of a sentence; None if there is nothing.
    """
    offset, recorded, commits = start.offset, start.recorded, start.commits
    assert offset is not None and commits is not None
    then = None if recorded is None else recorded.input_topic_id
    if None not in (then, commits.input_topic_id) and then != commits.input_topic_id:
        return _elsewhere(start, None), "was recreated: all that it holds is handled"
    if start.end is not None and offset > start.end:
        return _elsewhere(start, None), f"ends before the group's offset {offset}: all that it holds is handled"
    if first is not None and offset < first:
        gone = f"{first - offset} offsets that the group hadn't handled were deleted by another program or by retention"
        if recorded is None:
            gone = f"another program committed {offset}, so whether the group had handled what is gone isn't known"
        return _elsewhere(start, first), f"begins at {first} now: {gone}"
    kept = offset if recorded is None else recorded.kept_below
    if kept is None or (first is not None and kept <= first):
        return start, None
    unhandled = f"holds records before {kept} that the group hasn't handled, since another program committed {kept}"
    handle = f"`waitreg rewind --to-earliest --topic {start.topic}` has them handled"
    return start._replace(commits=replace(commits, kept_below=kept)), f"{unhandled}. They are kept. {handle}"


def require_same_identities(start: Start) -> None:
    """Refuse an input topic whose unread records the group took for the deliveries that their lineage says.

    This process would take them for new records, with other idempotency keys.

    Args:
        start: at the committed offset.

    Raises:
        ConfigurationError: it has such records.
        TransientError: whether it has any isn't known yet.
    """
    if start.offset is None or start.commits is None or start.recorded is None:
        return
    if start.recorded.redeliver_to in (None, start.commits.redeliver_to):
        return
    place = f"{start.topic}[{start.partition}]"
    if start.end is None:
        raise TransientError(f"the end of {place} isn't known yet")
    if start.offset < start.end:
        raise ConfigurationError(
            f"{place} may have redelivered records from offset {start.offset} to {start.end - 1}, which would get new "
            "idempotency keys: the group's commit says redeliver_to=origin, and this process doesn't. To keep the "
            'keys, set processor.redeliver_to = "origin" until the group has handled them (docs/redrive.md)'
        )


def _elsewhere(start: Start, offset: int | None) -> Start:
    recorded = start.recorded
    # More records from there on may be registered than the metadata says.
    known = None if recorded is None else recorded.with_recorded(None, recorded.registration)
    return start._replace(offset=offset, recorded=known, moved=True)
