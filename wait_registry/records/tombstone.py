"""The tombstone: key = wait ID, null value, and how the registration ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from typing import Final

from wait_registry.records.header_names import WAIT_OUTCOME


class Outcome(StrEnum):
    """How a registration ended."""

    DONE = "done"
    RETRIED = "retried"
    DEAD_LETTERED = "dead_lettered"
    DISCARDED = "discarded"
    EXPIRED = "expired"
    REDELIVERED = "redelivered"

    @property
    def by_processor(self) -> bool:
        """Whether a processor writes it; the others are the sweeper's."""
        return self not in (Outcome.EXPIRED, Outcome.REDELIVERED)


_HEADERS: Final[dict[Outcome, list[tuple[str, bytes | None]]]] = {
    outcome: [(WAIT_OUTCOME, outcome.value.encode())] for outcome in Outcome
}
_OUTCOMES: Final = {outcome.value.encode(): outcome for outcome in Outcome}


def tombstone_headers(outcome: Outcome) -> list[tuple[str, bytes | None]]:
    """Return the headers of a tombstone.

    Returns:
        A list that all callers share: hand it to ``produce``, never change it.
    """
    return _HEADERS[outcome]


def decode_outcome(headers: Iterable[tuple[str, bytes | None]] | None) -> Outcome | None:
    """Return the outcome of a tombstone, or None if it is unknown (the registration is settled all the same)."""
    value = dict(headers or ()).get(WAIT_OUTCOME)
    return None if value is None else _OUTCOMES.get(value)


def oldest_allowed(delete_retention_ms: int) -> timedelta:
    """Return how old a position may be: half of the topic's delete.retention.ms, for which tombstones stay."""
    return timedelta(milliseconds=delete_retention_ms / 2)
