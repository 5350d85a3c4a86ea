"""What one batch did to Postgres."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of one committed batch; ``marked`` are expired dead letters found to have finished after all."""

    table: str
    rows: int
    deleted: int
    quarantined: int
    marked: int
