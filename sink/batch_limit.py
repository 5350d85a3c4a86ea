"""How many records a batch may have, so that it stays within its bytes too: pure.

Spark's Kafka source knows a limit in offsets only (4.2), fixed when a query starts. So the records' mean size is learnt
from every batch, and a query whose limit has become wrong is started again with a better one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# A batch that may become this many times its aim is too large: the limit is lowered.
TOLERANCE = 2.0
# A limit that grows is raised in steps of this size, each of which starts the query again.
SLOWNESS = 4.0
# A limit that has come to its end is raised when it was this many times smaller: else a catch-up is slowed down.
WORTHWHILE = 2.0
# The mean remembers so many records at most, so that a few of another size don't shake it.
MEMORY_RECORDS = 5_000
# Beside key, value and headers a record costs this much in columns.
OVERHEAD_BYTES = 64


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """``max_records`` and ``aim_bytes`` are settings; ``mean_bytes`` is learnt, ``ceiling`` lowered by failures.

    The mean counts like ``remembered`` records: one large record that comes first in a log must not make batches small
    for thousands of others.
    """

    max_records: int
    aim_bytes: int
    mean_bytes: float = 1024.0
    ceiling: int | None = None
    remembered: int = MEMORY_RECORDS

    @property
    def records(self) -> int:
        """The limit for a query that starts now."""
        by_bytes = int(self.aim_bytes / max(self.mean_bytes, 1.0))
        return max(1, min(self.max_records, by_bytes, self.ceiling or self.max_records))

    @property
    def grown(self) -> bool:
        """Whether the limit is what records and bytes allow, after a start that was careful.

        Until then each batch is to be written by itself: if the next one kills the driver, the positions have moved up
        to it, and what comes next is looked at anew.
        """
        return self.ceiling is None or self.ceiling > self.records

    def observed(self, records: int, nbytes: int, offsets: int, running: int) -> BatchLimit:
        """Return the limit after a batch.

        Args:
            records: in the batch.
            nbytes: their bytes.
            offsets: out of so many offsets: a log has gaps.
            running: the limit that the query had, in offsets: its batches have about so many, or a few less, since
                Spark divides it among the partitions.
        """
        ceiling = self.ceiling
        full = offsets >= running // 2 and nbytes < self.aim_bytes
        if ceiling is not None and full and ceiling < SLOWNESS * running:
            ceiling = 2 * ceiling if 2 * ceiling < self.max_records else None
        total, count = self.remembered * self.mean_bytes + nbytes + records * OVERHEAD_BYTES, self.remembered + records
        return replace(self, mean_bytes=total / count, ceiling=ceiling, remembered=min(count, MEMORY_RECORDS))

    def sampled(self, records: int, nbytes: int, *, whole: bool, harmless: int) -> BatchLimit:
        """Return the limit after a look at the records that come next: their mean is taken as it is.

        Where more follow that nobody has looked at, of whatever size, the first batch is no larger than the look (than
        ``harmless``, so many records of any size, when it saw nothing), and the next ones grow: a driver that dies of
        what it meets has come further by then, and won't meet it so again.
        """
        mean_bytes = nbytes / records + OVERHEAD_BYTES if records else self.mean_bytes
        if whole:
            return replace(self, mean_bytes=mean_bytes)
        seen = max(1, records or harmless)
        remembered = min(seen, MEMORY_RECORDS)
        return replace(self, mean_bytes=mean_bytes, ceiling=min(seen, self.ceiling or seen), remembered=remembered)

    def halved(self, running: int) -> BatchLimit:
        """Return the limit after a batch of a query with limit ``running`` was too large for the driver."""
        return replace(self, ceiling=max(1, running // 2))

    def should_restart(self, running: int, behind: int) -> bool:
        """Tell whether a query with limit ``running`` that is ``behind`` so many records should start again."""
        if running * self.mean_bytes > TOLERANCE * self.aim_bytes and running > self.records:
            return True
        growth = WORTHWHILE if self.grown else SLOWNESS
        return behind > 2 * running and self.records >= growth * running
