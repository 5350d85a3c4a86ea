"""What a sweep did, as values: rows by outcome per partition, which Spark's workers return, and the sum of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sweeper.outgoing import Unsendable
from wait_registry.records.times import format_utc_ms

NAMED_UNSENDABLE = 20


class RowOutcome(StrEnum):
    """What became of a due row; each is counted in the result, the log, the metrics and the table `sweep`.

    ``superseded`` rows had a later entry in the wait topic, ``unseen`` ones no wait record in it any longer, and
    ``unsendable`` ones are too large, have no topic to go to or no key that the topic requires, or can't be read.
    """

    EXPORTED = "exported"
    REDELIVERED = "redelivered"
    SUPERSEDED = "superseded"
    UNSEEN = "unseen"
    UNSENDABLE = "unsendable"


class Skip(StrEnum):
    """Why a partition was skipped, wholly or from some chunk on; the next sweep starts it again."""

    FENCED = "fenced"
    OPEN_TRANSACTION = "open_transaction"
    TAIL_TOO_LONG = "tail_too_long"
    POSITION_TOO_OLD = "position_too_old"
    TOPIC_CHANGED = "topic_changed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


@dataclass(slots=True)
class PartitionResult:
    """What was done in one partition, also when it was skipped.

    Attributes:
        partition: of the wait topic.
        counts: rows by outcome.
        named: the first unsendable rows.
        skip: why the partition wasn't finished, None when it was.
        reason: the same in words.
    """

    partition: int
    counts: Counter[RowOutcome] = field(default_factory=Counter)
    named: tuple[Unsendable, ...] = ()
    skip: Skip | None = None
    reason: str = ""


class SweepResult(StrEnum):
    """How a sweep ended: ``partial`` skipped partitions or rows, ``skipped`` ran while another sweeper swept."""

    DONE = "done"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    FAILED = "failed"


class SkippedPartition(NamedTuple):
    """A partition that was not finished."""

    partition: int
    skip: Skip
    reason: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep.

    Attributes:
        wait_topic: the topic swept.
        started_at: when the sweep started.
        duration_s: how long it took, s.
        result: how it ended.
        reason: why, if it failed or was skipped.
        due: rows that Postgres showed as due when it started.
        counts: these rows by outcome.
        skipped: partitions that were not finished.
        partitions: number of partitions that had due rows.
    """

    wait_topic: str
    started_at: datetime
    duration_s: float
    result: SweepResult
    reason: str = ""
    due: int = 0
    counts: Counter[RowOutcome] = field(default_factory=Counter)
    skipped: tuple[SkippedPartition, ...] = ()
    partitions: int = 0

    def trouble(self) -> str | None:
        """Return why nothing at all could be done; a partition that another sweeper fenced is no trouble."""
        if self.result is SweepResult.FAILED:
            return self.reason
        reasons = [item.reason for item in self.skipped if item.skip is not Skip.FENCED]
        return reasons[0] if reasons and len(self.skipped) == self.partitions else None

    def as_fields(self) -> dict[str, Any]:
        """Return it as plain JSON values, for a log line."""
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "counts"}
        return {
            **plain,
            **self.counts_as_json(),
            "started_at": format_utc_ms(int(self.started_at.timestamp() * 1000)),
            "duration_s": round(self.duration_s, 3),
            "result": self.result.value,
            "skipped": self.skipped_as_json(),
        }

    def in_words(self) -> str:
        """Return it on one line for people."""
        numbers = {"due": self.due, **self.counts_as_json(), "partitions skipped": len(self.skipped)}
        counts = ", ".join(f"{name} {count}" for name, count in numbers.items() if count) or "nothing due"
        return f"sweep {self.result.value} in {self.duration_s:.3f} s: {self.reason or counts}"

    def ended(self, result: SweepResult, reason: str) -> Sweep:
        """Return it with another end than the partitions' results would give."""
        return replace(self, result=result, reason=reason)

    def counts_as_json(self) -> dict[str, int]:
        """Return the rows by each outcome, also those of none."""
        return {outcome.value: self.counts[outcome] for outcome in RowOutcome}

    def skipped_as_json(self) -> list[dict[str, Any]]:
        """Return the partitions that were not finished, and rows that only a rebuild removes, as plain JSON values."""
        left = [{"partition": item.partition, "skip": item.skip.value, "reason": item.reason} for item in self.skipped]
        unseen = self.counts[RowOutcome.UNSEEN]
        return [*left, {"rows": unseen, "reason": unseen_rows(unseen)}] if unseen else left


def unseen_rows(count: int) -> str:
    """Return what due rows without a wait record mean, and what to do."""
    return f"{count} due rows whose wait record isn't in the wait topic, not exported: run `waitreg rebuild`"


def swept(
    wait_topic: str,
    started_at: datetime,
    duration_s: float,
    due: int,
    results: Sequence[PartitionResult],
    warnings: tuple[str, ...] = (),
) -> Sweep:
    """Add up the partitions' results.

    Args:
        wait_topic: the topic swept.
        started_at: when the sweep started.
        duration_s: how long it took, s.
        due: rows due when it started.
        results: of the partitions that had due rows.
    """
    counts = sum((result.counts for result in results), Counter[RowOutcome]())
    skipped = tuple(SkippedPartition(r.partition, r.skip, r.reason) for r in results if r.skip is not None)
    return Sweep(
        wait_topic=wait_topic,
        started_at=started_at,
        duration_s=duration_s,
        result=SweepResult.PARTIAL if skipped or counts[RowOutcome.UNSENDABLE] else SweepResult.DONE,
        due=due,
        counts=counts,
        skipped=skipped,
        partitions=len(results),
    )
