"""What a job does with a dead letter, and if nothing, why: one category each, in the order of the checks."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from wait_registry.records.operation import Kind, Place, Requested
from wait_registry.records.original import TimestampType


class Category(StrEnum):
    """Where a dead letter of a selection comes; the counts of all categories are the selection's."""

    REDRIVEN = "redriven"
    ARCHIVED = "archived"
    RESTORED = "restored"
    FOREIGN = "foreign"
    ALREADY_REDRIVEN = "already_redriven"
    ALREADY_ARCHIVED = "already_archived"
    NOT_ARCHIVED = "not_archived"
    SAME_DELIVERY = "same_delivery"
    CHANGED = "changed"
    CONFLICT = "conflict"
    FINISHED_LATE = "finished_late"
    STILL_WAITING = "still_waiting"
    MAY_BE_DONE = "may_be_done"
    MAX_REDRIVES = "max_redrives"
    UNREADABLE = "unreadable"
    TARGET_UNNAMED = "target_unnamed"
    TARGET_MISSING = "target_missing"
    PARTITION_MISSING = "partition_missing"
    COMPACTED = "compacted"
    TARGET_UNREAD = "target_unread"
    IDENTITY_LOST = "identity_lost"
    NO_MEMBERS = "no_members"
    TOO_LARGE = "too_large"
    NO_KEY = "no_key"
    REFUSED = "refused"


DONE: Final = {Kind.REDRIVE: Category.REDRIVEN, Kind.ARCHIVE: Category.ARCHIVED, Kind.RESTORE: Category.RESTORED}
MEANINGS: Final = {
    Category.REDRIVEN: "will be sent again",
    Category.ARCHIVED: "will be marked as no longer wanted",
    Category.RESTORED: "will be marked as open again",
    Category.FOREIGN: "no processor of this project wrote it, so its group and record are unknown",
    Category.ALREADY_REDRIVEN: "its delivery was redriven before",
    Category.ALREADY_ARCHIVED: "it is archived: restore it first",
    Category.NOT_ARCHIVED: "it isn't archived",
    Category.SAME_DELIVERY: "another dead letter of the same delivery stands for it",
    Category.CHANGED: "it isn't the record that was edited: edit it again",
    Category.CONFLICT: "two dead letters of its delivery have different contents: compare them with `waitreg dlq diff`",
    Category.FINISHED_LATE: "the work was done after its deadline",
    Category.STILL_WAITING: "its delivery is still registered, so its expiry decides",
    Category.MAY_BE_DONE: "it expired, so the work may have been done",
    Category.MAX_REDRIVES: "its record was redriven redrive.max_redrives times",
    Category.UNREADABLE: "no record can be made of its row",
    Category.TARGET_UNNAMED: "its group's redelivery topic would have a name that Kafka refuses: `--to origin`, with "
    "processor.redeliver_to = origin",
    Category.TARGET_MISSING: "the topic to send it to doesn't exist or may not be written to: `waitreg topics create`. "
    "A share group has none: `waitreg replay`",
    Category.PARTITION_MISSING: "its input topic no longer has its partition: leave `--to origin` out",
    Category.COMPACTED: "its input topic is compacted, where it would replace newer records of its key: leave "
    "`--to origin` out",
    Category.TARGET_UNREAD: "no member of its group reads the topic: one that may read it finds it within a minute, "
    "unless the group no longer names the input in processor.topics",
    Category.IDENTITY_LOST: "its group would take it for a new record: not all of its commits in the topic say "
    "processor.redeliver_to = origin. Set it for every processor of the group, or leave `--to origin` out",
    Category.NO_MEMBERS: "its group has no member now; what is sent is read when one starts",
    Category.TOO_LARGE: "it is larger than the topic takes",
    Category.NO_KEY: "it has no key, which the compacted topic refuses",
    Category.REFUSED: "the broker refused it",
}
# What a job may do all the same, if its request allows it.
ALLOWABLE: Final = frozenset(
    {
        Category.ALREADY_REDRIVEN,
        Category.FINISHED_LATE,
        Category.MAY_BE_DONE,
        Category.MAX_REDRIVES,
        Category.NO_MEMBERS,
    }
)


class Standing(NamedTuple):
    """What the marks say of a dead letter, and of its delivery.

    Attributes:
        state: of the dead letter, and the job of its last mark. A mark is of the dead letters that its delivery had
            then; a later one is open.
        number: how often its delivery was redriven.
        of_record: how often its record was.
    """

    state: str = "open"
    job: str | None = None
    number: int = 0
    of_record: int = 0


class Twin(NamedTuple):
    """Another dead letter of a delivery, with the ID of its topic, and its state by the marks of the tables."""

    place: Place
    state: str


class Candidate(NamedTuple):
    """A dead letter of a selection, as the tables show it, without its contents.

    ``failed`` is whether an expired one failed as well, so its work isn't done. ``most_bytes`` is never less than
    the bytes of its key, value and headers. ``twins`` are the other dead letters of its delivery.
    ``record_time_ms`` is the timestamp of its record, ms since the epoch. ``marked_place`` is its place as marks name
    it.
    """

    place: Place
    marked_place: Place
    reason: str | None
    wait_id: str | None
    group: str | None
    record: Place | None
    finished_late: bool
    failed: bool
    waiting: bool
    conflicting: bool
    most_bytes: int
    cursor: tuple[str | int, ...]
    standing: Standing
    delivery: int | None = None
    twins: tuple[Twin, ...] = ()
    record_time_ms: int | None = None


class Contents(NamedTuple):
    """What is sent of a dead letter, and its lineage: columns of its row. ``headers_json`` is as Postgres shows it."""

    key: bytes | None
    body: bytes | None
    headers_json: str
    idempotency_key: str | None
    original_topic: str
    original_partition: int | None
    original_offset: int | None
    original_timestamp_ms: int | None
    original_timestamp_type: TimestampType | None
    wait_id: str
    wait_partition: int | None
    wait_offset: int | None
    group: str | None
    instance: str | None
    delivery: int | None


def is_marked(state: str, job: Requested) -> bool:
    """Return whether a job that acts on a delivery acts on a dead letter of it that is in this state."""
    match job.kind:
        case Kind.REDRIVE:
            return True
        case Kind.ARCHIVE:
            return state == "open" or (state == "redriven" and Category.ALREADY_REDRIVEN in job.allowed)
        case Kind.RESTORE:
            return state == "archived"


def obstacle(candidate: Candidate, standing: Standing, job: Requested, max_redrives: int) -> Category | None:
    """Return why a job does nothing with a dead letter, whatever the topic it would be sent to; None if it does.

    Args:
        candidate: the dead letter as the tables show it.
        standing: what the marks say now: those of the tables, and those after them in the operations topic.
        job: what is done, and what is allowed.
        max_redrives: redrive.max_redrives.
    """
    if candidate.wait_id is None or candidate.group is None:
        return Category.FOREIGN
    if standing.job == job.job:
        return Category.SAME_DELIVERY
    if job.kind is Kind.RESTORE:
        return None if standing.state == "archived" else Category.NOT_ARCHIVED
    if standing.state == "archived":
        return Category.ALREADY_ARCHIVED
    found = _conditional(candidate, standing, job.kind is Kind.REDRIVE, max_redrives)
    return next((name for name in found if not (name in ALLOWABLE and name in job.allowed)), None)


def _conditional(candidate: Candidate, standing: Standing, redrives: bool, max_redrives: int) -> Iterator[Category]:
    """Yield why a job does nothing with a dead letter unless its request allows it, in the order of the checks."""
    # Whichever dead letter of the delivery was redriven: its record is there already.
    if standing.state == "redriven" or (redrives and standing.number > 0):
        yield Category.ALREADY_REDRIVEN
    if not redrives:
        return
    if candidate.conflicting:
        yield Category.CONFLICT
    if candidate.finished_late:
        yield Category.FINISHED_LATE
    if candidate.waiting:
        yield Category.STILL_WAITING
    if candidate.reason == "expired" and not (candidate.finished_late or candidate.failed):
        yield Category.MAY_BE_DONE
    if standing.of_record >= max_redrives:
        yield Category.MAX_REDRIVES
