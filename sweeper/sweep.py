"""One sweep as a value: what was due, what became of it, what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sweeper.partition_result import PartitionResult, Skip
from wait_registry.records.times import format_utc_ms


class SweepResult(StrEnum):
    """How a sweep ended: ``partial`` left partitions or rows out, ``skipped`` left all to another sweeper's sweep."""

    DONE = "done"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SkippedPartition:
    """A partition that was not finished."""

    partition: int
    skip: Skip
    reason: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The counts of one sweep.

    ``due`` is what Postgres showed at its start, in ``partitions`` partitions. ``superseded`` rows had a later entry in
    the wait topic, ``unseen`` ones no wait record in it any more; ``set_aside`` ones are too large, have no topic to go
    to or no key that it asks for, or can't be read.
    """

    wait_topic: str
    started_at: datetime
    duration_s: float
    result: SweepResult
    reason: str = ""
    due: int = 0
    exported: int = 0
    redelivered: int = 0
    superseded: int = 0
    unseen: int = 0
    set_aside: int = 0
    skipped: tuple[SkippedPartition, ...] = ()
    partitions: int = 0

    def trouble(self) -> str | None:
        """Return why nothing at all could be done; a partition that another sweeper took over is in good hands."""
        if self.result is SweepResult.FAILED:
            return self.reason
        reasons = [item.reason for item in self.skipped if item.skip is not Skip.FENCED]
        return reasons[0] if reasons and len(self.skipped) == self.partitions else None

    def as_fields(self) -> dict[str, Any]:
        """Return it as plain JSON values, for a log line."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **plain,
            "started_at": format_utc_ms(int(self.started_at.timestamp() * 1000)),
            "duration_s": round(self.duration_s, 3),
            "result": self.result.value,
            "skipped": self.skipped_as_json(),
        }

    def in_words(self) -> str:
        """Return it as people read it, on one line."""
        told = {
            "due": self.due,
            "exported": self.exported,
            "redelivered": self.redelivered,
            "superseded": self.superseded,
            "unseen": self.unseen,
            "set aside": self.set_aside,
            "partitions left": len(self.skipped),
        }
        counts = ", ".join(f"{name} {count}" for name, count in told.items() if count) or "nothing due"
        detail = self.reason or counts
        return f"sweep {self.result.value} in {self.duration_s:.3f} s: {detail}"

    def ended(self, result: SweepResult, reason: str) -> Sweep:
        """Return it with another end than the partitions' results would give."""
        return replace(self, result=result, reason=reason)

    def skipped_as_json(self) -> list[dict[str, Any]]:
        """Return the partitions that were not finished, and rows that only a rebuild removes, as plain JSON values."""
        left = [{"partition": item.partition, "skip": item.skip.value, "reason": item.reason} for item in self.skipped]
        return [*left, {"rows": self.unseen, "reason": unseen_rows(self.unseen)}] if self.unseen else left


def unseen_rows(count: int) -> str:
    """Say what due rows without a wait record mean, and what to do."""
    return f"{count} due rows whose wait record isn't in the wait topic, not exported: run `waitreg rebuild`"


def swept(
    wait_topic: str,
    started_at: datetime,
    duration_s: float,
    due: int,
    results: Sequence[PartitionResult],
) -> Sweep:
    """Add the partitions' results up.

    Args:
        wait_topic: the topic swept.
        started_at: when the sweep began.
        duration_s: how long it took, s.
        due: rows due at its start.
        results: of the partitions that had rows due.
    """
    skipped = tuple(SkippedPartition(r.partition, r.skip, r.reason) for r in results if r.skip is not None)
    left_out = skipped or any(result.set_aside for result in results)
    return Sweep(
        wait_topic=wait_topic,
        started_at=started_at,
        duration_s=duration_s,
        result=SweepResult.PARTIAL if left_out else SweepResult.DONE,
        due=due,
        exported=sum(result.exported for result in results),
        redelivered=sum(result.redelivered for result in results),
        superseded=sum(result.superseded for result in results),
        unseen=sum(result.unseen for result in results),
        set_aside=sum(result.set_aside for result in results),
        skipped=skipped,
        partitions=len(results),
    )
