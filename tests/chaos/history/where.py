"""Where the evidence of a run is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Where:
    """Addresses (not by way of faulty links), names and files of one run.

    ``calls`` is None when the handler isn't our downstream. Redelivery topics follow from inputs and group.
    """

    bootstrap: str
    postgres_url: str
    schema: str
    group: str
    inputs: Sequence[str]
    wait_topic: str
    letter_topics: Sequence[str]
    manifest: Path
    calls: Path | None
    looks: Path

    @property
    def redelivery_topics(self) -> Sequence[str]:
        """Through which the group gets expired records again; they needn't be there."""
        return redelivery_topics(self.inputs, self.group)


def redelivery_topics(inputs: Sequence[str], group: str) -> Sequence[str]:
    """Return the redelivery topics of a group, one an input topic."""
    return [f"{topic}.{group}.redeliver" for topic in inputs]
