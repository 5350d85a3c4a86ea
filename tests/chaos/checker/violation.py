"""One violation of a guarantee, and the record or registration it is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto

from wait_registry.demo.manifest import Coordinates


class Kind(StrEnum):
    """The ways in which a guarantee can be violated; each is decided by the rule of its name."""

    LOST = auto()
    COMMITTED_PAST = auto()
    FALSE_EXPORT = auto()
    DOUBLED = auto()
    UNPAIRED = auto()
    UNFINISHED = auto()
    CHANGED = auto()
    MISNAMED = auto()
    ORPHAN_ROW = auto()
    MISSING_ROW = auto()
    ROW_DIFFERS = auto()
    SNAPSHOT_DIFFERS = auto()
    EARLY_TOMBSTONE = auto()
    EARLY_CALL = auto()
    HANDLED_AGAIN = auto()
    FORGOTTEN = auto()
    NOT_AS_SET = auto()
    MISROUTED = auto()
    UNFOUNDED = auto()
    DEAD_LETTERED_AGAIN = auto()
    LATE_CALL = auto()
    ABANDONED = auto()
    BOUND = auto()


@dataclass(frozen=True, slots=True)
class Violation:
    """``about`` is the place of the original record where it is known, else a wait ID, or what was measured."""

    kind: Kind
    about: Coordinates | str
    why: str
