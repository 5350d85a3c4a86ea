"""How many offsets to read at once from a compacted log, which may have gaps of any size: pure."""

from __future__ import annotations

from dataclasses import dataclass

GROWTH = 8


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """``records`` is what a chunk should hold; ``span`` how many offsets the next one covers."""

    records: int
    span: int

    @classmethod
    def of(cls, records: int) -> ChunkSpan:
        """Begin as if the log had no gaps."""
        return cls(records, records)

    def after(self, found: int) -> ChunkSpan:
        """Return the span that follows a chunk in which ``found`` records were: as dense, and growing slowly."""
        wanted = self.span * GROWTH if found == 0 else self.span * self.records // found
        return ChunkSpan(self.records, max(1, min(wanted, self.span * GROWTH)))

    def halved(self) -> ChunkSpan | None:
        """Return half the span after a chunk that was too large, None when one offset already was."""
        return None if self.span == 1 else ChunkSpan(self.records, self.span // 2)
