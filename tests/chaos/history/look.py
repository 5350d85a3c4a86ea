"""One look at the cluster from outside, while the run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

Partition = tuple[str, int]
"""Topic and number of a partition."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen between ``began_ms`` and ``ended_ms``, in the order of the fields.

    So whatever a later field lacks was not there when an earlier one was true. ``committed`` has the group's offsets
    (those of partitions without any are left out), ``wait_ends`` and ``wait_stable`` high watermark and last stable
    offset of the wait topic by partition, ``letter_ends`` the high watermarks of dead letter and redelivery topics.
    """

    began_ms: int
    ended_ms: int
    committed: Mapping[Partition, int]
    wait_stable: Mapping[int, int]
    wait_ends: Mapping[int, int]
    letter_ends: Mapping[Partition, int]


def encode_look(look: Look) -> bytes:
    """Return the look as a JSON line."""
    return (
        orjson.dumps(
            {
                "began_ms": look.began_ms,
                "ended_ms": look.ended_ms,
                "committed": [[*place, offset] for place, offset in look.committed.items()],
                "wait_stable": list(look.wait_stable.items()),
                "wait_ends": list(look.wait_ends.items()),
                "letter_ends": [[*place, offset] for place, offset in look.letter_ends.items()],
            }
        )
        + b"\n"
    )


def read_looks(path: Path) -> Iterator[Look]:
    """Return the looks of a file in order; a last line without its newline was never finished."""
    with path.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                return
            fields = orjson.loads(line)
            yield Look(
                fields["began_ms"],
                fields["ended_ms"],
                {(topic, partition): offset for topic, partition, offset in fields["committed"]},
                dict(fields["wait_stable"]),
                dict(fields["wait_ends"]),
                {(topic, partition): offset for topic, partition, offset in fields["letter_ends"]},
            )
