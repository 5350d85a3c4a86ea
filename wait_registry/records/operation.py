"""What operators did: the records of the operations topic, in JSON.

The topic has one partition, so all of it has one order. A mark and the record that it speaks of are in one transaction.
Fields that a later version adds are ignored. A record that can't be read, or that no table holds, raises `DataError`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError

from wait_registry.errors import DataError

# What a text, an int and a bigint of Postgres hold. Neither does librdkafka's Python client take NUL in a name.
_Text: TypeAlias = Annotated[str, Field(pattern=r"^[^\x00]*$")]
_Int: TypeAlias = Annotated[int, Field(ge=-(2**31), lt=2**31)]
_BigInt: TypeAlias = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Rate: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Kind(StrEnum):
    """What a job does with dead letters."""

    REDRIVE = "redrive"
    ARCHIVE = "archive"
    RESTORE = "restore"

    @property
    def state(self) -> str:
        """Return the state of a dead letter after it."""
        return {Kind.REDRIVE: "redriven", Kind.ARCHIVE: "archived", Kind.RESTORE: "open"}[self]


class State(StrEnum):
    """The state of a job: ``awaiting`` and ``paused`` can become ``running``, the first one only if it is approved."""

    AWAITING = "awaiting"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Place(NamedTuple):
    """Topic, partition and offset of a record."""

    topic: _Text
    partition: _Int
    offset: _BigInt

    def __str__(self) -> str:
        """Return it as it is typed: ``orders.dlq:0:17``."""
        return f"{self.topic}:{self.partition}:{self.offset}"

    def as_written(self) -> Place:
        """Return it with the topic's name of then; see `kept_topic_name`."""
        return self._replace(topic=self.topic.partition("@")[0])


def _from_base64(value: object) -> object:
    return b64decode(value, validate=True) if isinstance(value, str) else value


_Bytes: TypeAlias = Annotated[
    bytes,
    BeforeValidator(_from_base64),
    PlainSerializer(lambda value: b64encode(value).decode(), return_type=str, when_used="json"),
]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Replacement(_Model):
    """The record that an edit sends in place of a dead letter's own.

    Attributes:
        key: key of the record.
        value: value of the record.
        headers: original headers in their order, without the one that says that it was edited.
        edited: SHA-256 of the record that was edited. No other one is replaced.
        new_key: whether the key differs from that of the record that was edited.
    """

    key: _Bytes | None = None
    value: _Bytes | None = None
    headers: tuple[tuple[_Text, _Bytes | None], ...] = ()
    edited: str = Field(pattern="^[0-9a-f]{64}$")
    new_key: bool = False


class _Event(_Model):
    version: int = 1


class _Asked(_Event):
    """An event that a person asked for: ``by`` whom, whether that was checked, and ``via`` command or console."""

    by: _Text
    authenticated: bool
    via: _Text


class _OfJob(_Event):
    job: _Text = Field(min_length=1, max_length=64)


class Requested(_OfJob, _Asked):
    """A job begins.

    Attributes:
        kind: what it does.
        group: consumer group of the dead letters.
        reason: what the person gave as the reason.
        conditions: which dead letters, with absolute times.
        ends: dead letter topics and the offset before which their dead letters are meant, by partition.
        target: ``redelivery``, the topic that only the group reads, or ``origin``, the input topic.
        rate: records per second at most.
        limit: how many records at most.
        canary: how many records are sent first; the job waits until it is known what became of them.
        approval: whether the job begins only when another person has approved it.
        allowed: categories that are sent all the same.
        expected: dead letters by category, as the dry run counted them.
        replacement: the edited record that is sent, in a job of one dead letter.
    """

    event: Literal["requested"] = "requested"
    kind: Kind
    group: _Text
    reason: _Text
    conditions: tuple[_Text, ...]
    ends: dict[_Text, dict[_Int, _BigInt]]
    target: _Text = "redelivery"
    rate: _Rate
    limit: _BigInt | None = None
    canary: _BigInt | None = None
    approval: bool = False
    allowed: tuple[_Text, ...] = ()
    expected: dict[_Text, _BigInt] = {}
    replacement: Replacement | None = None


class Mark(_OfJob):
    """A delivery was redriven, archived or restored.

    Attributes:
        kind: which of the three.
        group: consumer group.
        by: who asked for it.
        wait_id: of the delivery.
        dead_letters: the places of the dead letters that it is of, all of which the delivery had then; a later one
            isn't marked. The topics are named as `kept_topic_name` does, if the tables knew their IDs.
        record: where the record is in its input topic, if the dead letter says so.
        record_time_ms: its timestamp there, ms since the epoch: a topic that is recreated has other records at the
            same places.
        number: how many times the delivery has been redriven, this time included.
        target: where the record was sent, with the broker's time, ms since the epoch.
        next_wait_id: the wait ID of the next delivery.
        delivery: the number of the next delivery.
        edited: whether an edited record was sent.
    """

    event: Literal["mark"] = "mark"
    kind: Kind
    group: _Text
    by: _Text
    wait_id: _Text = Field(max_length=64)
    dead_letters: tuple[Place, ...]
    record: Place | None = None
    record_time_ms: _BigInt | None = None
    number: _Int = 0
    target: Place | None = None
    target_time_ms: _BigInt | None = None
    next_wait_id: _Text | None = Field(None, max_length=64)
    delivery: _Int | None = None
    edited: bool = False

    def covers(self, place: Place) -> bool:
        """Return whether it is of the dead letter at a place; where no ID of the topic is known, its name decides."""
        unknown = "@" not in place.topic
        return any(
            each == place or ((unknown or "@" not in each.topic) and each.as_written() == place.as_written())
            for each in self.dead_letters
        )


class Advanced(_OfJob):
    """A job has come to ``cursor``; ``counts`` are all its dead letters so far, by category."""

    event: Literal["advanced"] = "advanced"
    cursor: tuple[_Text | _BigInt, ...]
    counts: dict[_Text, _BigInt]


class Changed(_OfJob):
    """A job has another state.

    Attributes:
        state: the new one.
        by: who wants it, ``system``, or for whom the executor works.
        authenticated: whether it was checked who wants it; None if an executor says it.
        reason: what the person or the executor gave as the reason.
    """

    event: Literal["changed"] = "changed"
    state: State
    by: _Text
    authenticated: bool | None = None
    reason: _Text = ""


class Approved(_OfJob, _Asked):
    """Another person approves a job.

    Attributes:
        reason: what the person gave as the reason.
    """

    event: Literal["approved"] = "approved"
    reason: _Text = ""


class RateChanged(_OfJob, _Asked):
    """A job sends at another rate from its next chunk on.

    Attributes:
        rate: records per second at most.
        reason: what the person gave as the reason.
    """

    event: Literal["rate"] = "rate"
    rate: _Rate
    reason: _Text = ""


class DeletionRequested(_OfJob, _Asked):
    """Records of a dead letter topic are about to be deleted; the job's `RecordsDeleted` is the answer.

    Without an answer, it isn't known which of them are deleted.

    Attributes:
        topic: the dead letter topic.
        before: the offset before which the records are deleted, by partition.
        reason: what the person gave as the reason.
    """

    event: Literal["deletion_requested"] = "deletion_requested"
    topic: _Text
    before: dict[_Int, _BigInt]
    reason: _Text = Field(min_length=1)


class RecordsDeleted(_OfJob, _Asked):
    """Records of a dead letter topic were deleted.

    Attributes:
        topic: the dead letter topic.
        first: the first offset that the broker keeps, by partition.
        failed: why the records of the other partitions weren't deleted, or may not have been.
    """

    event: Literal["records_deleted"] = "records_deleted"
    topic: _Text
    first: dict[_Int, _BigInt]
    failed: dict[_Int, _Text] = {}


class Revealed(_Asked):
    """A person is shown what is hidden of a dead letter; it belongs to no job.

    Attributes:
        place: of the dead letter.
        group: its consumer group.
        reason: what the person gave as the reason.
    """

    event: Literal["revealed"] = "revealed"
    place: Place
    group: _Text | None = None
    reason: _Text = Field(min_length=1)


# What says how far the job of an executor is.
JobEvent: TypeAlias = Requested | Advanced | Changed | Approved | RateChanged
Event: TypeAlias = JobEvent | Mark | DeletionRequested | RecordsDeleted | Revealed
_EVENTS: Final[TypeAdapter[Event]] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
# An executor checks each mark before it writes it, and then reads it in the topic, but decodes it once: this number of
# events is kept as they were read, and none whose value has more bytes than this.
_KEPT: Final = 4_096


def encode_event(event: Event) -> bytes:
    """Return the value of a record of the operations topic; its key is the job, or the place of a dead letter.

    Raises:
        DataError: `decode_event` wouldn't read it.
    """
    value = event.model_dump_json(exclude_none=True).encode()
    decode_event(value)
    return value


def encode_mark(fields: Mapping[str, object]) -> bytes:
    """Return the value of a mark's record from the fields of `Mark`, places as lists, in a quarter of the time.

    Raises:
        DataError: `decode_event` wouldn't read it.
    """
    value = orjson.dumps({"version": 1, "event": "mark", **fields})
    decode_event(value)
    return value


def decode_event(value: bytes | None) -> Event:
    """Read the value of a record of the operations topic; equal values may be read as the same object.

    Raises:
        DataError: it is none, or has a value that no table holds; the message doesn't quote it.
    """
    return _decode(value) if value is None or len(value) > _KEPT else _kept(value)


def _decode(value: bytes | None) -> Event:
    try:
        return _EVENTS.validate_json(value or b"")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "value"
        problem = first["type"].replace("_", " ")
        raise DataError(f"no record of the operations topic: {place}: {problem}") from None


_kept = lru_cache(maxsize=_KEPT)(_decode)
