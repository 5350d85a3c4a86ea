"""What stands in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.history.entries import Place, Registration
from wait_registry.demo.fingerprint import Fingerprint
from wait_registry.demo.manifest import Coordinates


@dataclass(frozen=True, slots=True)
class WaitRow:
    """A row of ``wait``: the registration it shows, and where that stands; ``unreadable`` when it shows none."""

    wait_id: str
    place: Place
    registration: Registration | None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A row of ``dead_letter``; what is null for a record that isn't ours is None."""

    place: Coordinates
    content: Fingerprint | None
    reason: str | None
    time_ms: int | None
    wait_id: str | None
    original: Coordinates | None
    timestamp_ms: int | None
    registration: Place | None
    group: str | None
    instance: str | None
    delivery: int | None
    finished_late: bool = False
    unreadable: str = ""
    timestamp_type: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    error_stacktrace: str | None = None


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A row of ``quarantine``: the place of what couldn't be read."""

    place: Coordinates
    error: str


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """A row of ``sink_progress``."""

    topic: str
    partition: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Tables:
    """The four tables that the sink owns, in one snapshot."""

    wait: Sequence[WaitRow]
    dead_letter: Sequence[DeadLetterRow]
    quarantine: Sequence[QuarantineRow]
    progress: Sequence[ProgressRow]


@dataclass(frozen=True, slots=True)
class View:
    """What the tables were like at some moment between ``began_ms`` and ``ended_ms`` while the run went on."""

    began_ms: int
    ended_ms: int
    tables: Tables
