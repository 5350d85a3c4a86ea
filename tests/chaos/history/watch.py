"""Looks at the cluster again and again from outside while a run goes on, and writes down what it sees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType


class Watch:
    """Polls in a thread of its own, with clients of its own; a context manager.

    Each look asks, in this order: the group's committed offsets; last stable offsets and then ends of the wait topic;
    ends of the dead letter and redelivery topics. So whatever a later answer lacks was not there when the earlier one
    was true. A broker that is away is waited out: a look without all its answers is left out, and counted.

    Args:
        bootstrap: the broker, not by way of a faulty link.
        group: whose committed offsets.
        inputs: its input topics; its redelivery topics are watched too as soon as they are there.
        wait_topic: the wait topic.
        letter_topics: the dead letter topics.
        path: gets one JSON line a look, appended.
        interval_s: from the end of a look to the beginning of the next one, s.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        inputs: Sequence[str],
        wait_topic: str,
        letter_topics: Sequence[str],
        path: Path,
        interval_s: float = 0.2,
    ) -> None:
        self.looks = 0
        self.left_out = 0

    def __enter__(self) -> Watch:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError
