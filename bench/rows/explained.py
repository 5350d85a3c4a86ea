"""Where it is explained why a target is missed and what was tried, as linked from RESULTS.md."""

from __future__ import annotations

from typing import Final

DECISIONS: Final = "../docs/decisions"
PROCESSOR: Final = f"{DECISIONS}/0017-what-a-record-costs-a-processor.md"
SINK: Final = f"{DECISIONS}/0018-the-sinks-batches.md"
EXPORT: Final = f"{DECISIONS}/0020-what-an-export-costs.md"


def missed(heading: str) -> str:
    """Return the link to a heading of the page on what the targets miss, by its anchor."""
    return f"{DECISIONS}/0021-what-the-targets-miss.md#{heading}"
