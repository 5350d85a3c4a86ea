"""Where the evidence of a run is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wait_registry.settings.root import Settings


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

    @classmethod
    def of(cls, settings: Settings, folder: Path) -> Where:
        """Return where a run of these settings, which go by no link, leaves its evidence; its files lie in a folder."""
        return cls(
            bootstrap=settings.kafka.bootstrap_servers,
            postgres_url=settings.postgres.url.get_secret_value(),
            schema=settings.postgres.schema_name,
            group=settings.processor.group,
            inputs=settings.processor.topics,
            wait_topic=settings.wait.topic,
            letter_topics=[settings.dead_letter.topic],
            manifest=folder / "manifest.jsonl",
            calls=folder / "calls.jsonl",
            looks=folder / "looks.jsonl",
        )

    @property
    def redelivery_topics(self) -> Sequence[str]:
        """Through which the group gets expired records again; they needn't be there."""
        return redelivery_topics(self.inputs, self.group)


def redelivery_topics(inputs: Sequence[str], group: str) -> Sequence[str]:
    """Return the redelivery topics of a group, one an input topic."""
    return [f"{topic}.{group}.redeliver" for topic in inputs]
