"""One broken promise, and the record or registration it is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wait_registry.demo.manifest import Coordinates


class Kind(StrEnum):
    """The ways in which a promise can be broken; each is decided by the rule of its name."""

    LOST = "lost"
    COMMITTED_PAST = "committed_past"
    FALSE_EXPORT = "false_export"
    DOUBLED = "doubled"
    UNPAIRED = "unpaired"
    UNFINISHED = "unfinished"
    CHANGED = "changed"
    MISNAMED = "misnamed"
    ORPHAN_ROW = "orphan_row"
    MISSING_ROW = "missing_row"
    ROW_DIFFERS = "row_differs"
    VIEW_DIFFERS = "view_differs"
    EARLY_TOMBSTONE = "early_tombstone"
    EARLY_CALL = "early_call"
    HANDLED_AGAIN = "handled_again"
    FORGOTTEN = "forgotten"
    NOT_AS_TOLD = "not_as_told"
    MISROUTED = "misrouted"
    UNFOUNDED = "unfounded"
    DEAD_LETTERED_AGAIN = "dead_lettered_again"
    LATE_CALL = "late_call"
    ABANDONED = "abandoned"
    BOUND = "bound"


@dataclass(frozen=True, slots=True)
class Violation:
    """``about`` is the place of the original record where it is known, else a wait id, or what was measured."""

    kind: Kind
    about: Coordinates | str
    why: str
