"""What a sweep did, as values: the result of each partition, which Spark's workers return, and their sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sweeper.export_decision import Unsendable
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

    def name(self, unsendable: Iterable[Unsendable]) -> None:
        """Add unsendable rows to the first ones."""
        self.named = (*self.named, *unsendable)[:NAMED_UNSENDABLE]

    def skipped(self, skip: Skip, reason: str) -> None:
        """Note why the partition wasn't finished."""
        self.skip, self.reason = skip, reason


class SweepResult(StrEnum):
    """How a sweep ended: ``partial`` skipped partitions or rows, ``skipped`` ran while another sweeper swept."""

    DONE = "done"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep.

    Attributes:
        wait_topic: the topic swept.
        started_at: when the sweep started.
        duration_s: how long it took, s.
        due: rows that Postgres showed as due when it started.
        partitions: what was done in each partition that had due rows.
        unswept: ``failed`` or ``skipped`` when no partition was swept, for this reason; else the partitions decide.
        reason: why, if it failed or was skipped.
    """

    wait_topic: str
    started_at: datetime
    duration_s: float = 0.0
    due: int = 0
    partitions: Sequence[PartitionResult] = ()
    unswept: SweepResult | None = None
    reason: str = ""

    @property
    def counts(self) -> Counter[RowOutcome]:
        """Rows by outcome."""
        return sum((result.counts for result in self.partitions), Counter[RowOutcome]())

    @property
    def skipped(self) -> tuple[PartitionResult, ...]:
        """The partitions that were not finished."""
        return tuple(result for result in self.partitions if result.skip is not None)

    @property
    def result(self) -> SweepResult:
        """How it ended."""
        if self.unswept is not None:
            return self.unswept
        return SweepResult.PARTIAL if self.skipped or self.counts[RowOutcome.UNSENDABLE] else SweepResult.DONE

    def trouble(self) -> str | None:
        """Return why nothing at all could be done; a partition that another sweeper fenced is no trouble."""
        if self.result is SweepResult.FAILED:
            return self.reason
        reasons = [result.reason for result in self.skipped if result.skip is not Skip.FENCED]
        return reasons[0] if reasons and len(self.skipped) == len(self.partitions) else None

    def as_fields(self) -> dict[str, Any]:
        """Return it as plain JSON values, for a log line."""
        return {
            "wait_topic": self.wait_topic,
            "started_at": format_utc_ms(int(self.started_at.timestamp() * 1000)),
            "duration_s": round(self.duration_s, 3),
            "result": self.result.value,
            "reason": self.reason,
            "due": self.due,
            **self.counts_as_json(),
            "skipped": self.skipped_as_json(),
            "partitions": len(self.partitions),
        }

    def in_words(self) -> str:
        """Return it on one line for people."""
        counted = self.counts_as_json()
        # Of skipped partitions, nothing is known of the other rows.
        left = 0 if self.skipped or self.unswept else self.due - sum(counted.values())
        more = {"ended meanwhile": max(0, left), "partitions skipped": len(self.skipped)}
        numbers = {"due": self.due, **counted, **more}
        counts = ", ".join(f"{name} {count}" for name, count in numbers.items() if count) or "nothing due"
        return f"sweep {self.result.value} in {self.duration_s:.3f} s: {self.reason or counts}"

    def counts_as_json(self) -> dict[str, int]:
        """Return the rows by each outcome, also those of none."""
        counts = self.counts
        return {outcome.value: counts[outcome] for outcome in RowOutcome}

    def skipped_as_json(self) -> list[dict[str, Any]]:
        """Return the partitions that were not finished, and rows that only a rebuild removes, as plain JSON values."""
        left = [{"partition": each.partition, "skip": each.skip, "reason": each.reason} for each in self.skipped]
        unseen = self.counts[RowOutcome.UNSEEN]
        return [*left, {"rows": unseen, "reason": unseen_rows(unseen)}] if unseen else left


def unseen_rows(count: int) -> str:
    """Return what due rows without a wait record mean, and what to do."""
    return f"{count} due rows whose wait record isn't in the wait topic, not exported: run `waitreg rebuild`"
