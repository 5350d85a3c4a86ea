"""What the engine wants done, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from processor.protocol.partition import Recorded
from processor.protocol.record import Entry
from processor.protocol.results import Lifetime
from wait_registry.records.topics import TopicPartition


class Register(NamedTuple):
    """Write wait records, in this order."""

    entries: Sequence[Entry]
    lifetime: Lifetime


class Commit(NamedTuple):
    """Commit these offsets, and record these with them; one commit is in flight at most."""

    offsets: Mapping[TopicPartition, int]
    recorded: Mapping[TopicPartition, Recorded]


class Start(NamedTuple):
    """Call the handler for these records."""

    entries: Sequence[Entry]


class Cancel(NamedTuple):
    """Cancel the calls of these records; they have no outcome here."""

    entries: Sequence[Entry]


class WriteTombstones(NamedTuple):
    """Write the tombstones of registered records that have an outcome."""

    entries: Sequence[Entry]


class Publish(NamedTuple):
    """Write the dead letters or retry records of these records, and report the acknowledgments."""

    entries: Sequence[Entry]


class Pause(NamedTuple):
    """Stop fetching these partitions."""

    places: Sequence[TopicPartition]


class Resume(NamedTuple):
    """Fetch these partitions again."""

    places: Sequence[TopicPartition]


class Rewind(NamedTuple):
    """Continue to poll a paused partition at this offset; what the client has fetched behind it is fetched again."""

    place: TopicPartition
    offset: int


class Release(NamedTuple):
    """Commit these offsets synchronously, record these with them, then give the revoked partitions up."""

    offsets: Mapping[TopicPartition, int]
    recorded: Mapping[TopicPartition, Recorded]


Effect: TypeAlias = Register | Commit | Start | Cancel | WriteTombstones | Publish | Pause | Resume | Rewind | Release
