"""Reads a run's history once it is over, with clients that belong to no service."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.history.history import FaultDone, History, Limits
from tests.chaos.history.where import Where

__all__ = ["Where", "read_history"]


def read_history(where: Where, *, faults: Sequence[FaultDone], limits: Limits, look_at_view: bool = True) -> History:
    """Read everything; the services have ended, or nothing moves any more.

    Args:
        where: the evidence.
        faults: what was done to the run.
        limits: its bounds, with the samples taken.
        look_at_view: read Postgres too; sensible once the sink has come to the log's ends.
    """
    raise NotImplementedError
