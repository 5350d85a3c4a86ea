"""What the command prints about the moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from wait_registry.errors import DataError
from wait_registry.kafka.offset_ranges import ranges_text
from wait_registry.records.times import format_utc_ms
from wait_registry.records.topics import TopicPartition
from waitreg.result_rows import render_rows
from waitreg.rewind.plan import Move
from waitreg.rewind.targets import Landing

_FAR_MS: Final = 3_600_000
_COLUMNS: Final = ("topic", "partition", "committed", "target", "handled_again", "skipped")


def report(
    moves: Sequence[Move],
    time_ms: int | None = None,
    landings: Mapping[TopicPartition, Landing] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield the lines that show what the moves do.

    Args:
        moves: of all chosen partitions.
        time_ms: the time to which they are moved, ms since 1970; None if they aren't moved to a time.
        landings: the records that decided where they go.
    """
    yield from render_rows(_COLUMNS, [_row(move) for move in moves])
    if time_ms is not None:
        yield from _decided(time_ms, landings)
    yield "Counts are offsets: a log with gaps has fewer records."
    yield from _deleted(moves)
    yield from _skipped(moves)


def _row(move: Move) -> tuple[object, ...]:
    topic, partition = move.place
    committed = "none" if move.committed is None else move.committed
    skipped = len(move.skipped) + move.deleted
    return topic, partition, committed, move.target, move.again, skipped


def _decided(time_ms: int, landings: Mapping[TopicPartition, Landing]) -> Iterator[str]:
    for (topic, partition), landing in sorted(landings.items()):
        if landing.time_ms is None:
            yield f"{topic}[{partition}]: no record has this time or a later one, so it goes to the end."
            continue
        late = landing.time_ms - time_ms >= _FAR_MS
        more = (
            ". That is long after the time, so records behind it may be from before: look at it first" if late else ""
        )
        yield f"{topic}[{partition}]: the record at {landing.offset} decides, of {_time(landing.time_ms)}{more}."


def _time(time_ms: int) -> str:
    try:
        return format_utc_ms(time_ms)
    except DataError:
        return f"{time_ms} ms since 1970"


def _deleted(moves: Sequence[Move]) -> Iterator[str]:
    for move in moves:
        if move.deleted:
            topic, partition = move.place
            yield (
                f"{topic}[{partition}]: {move.deleted} of the skipped offsets are no longer in the log and can't be "
                "handled by a replay."
            )


def _skipped(moves: Sequence[Move]) -> Iterator[str]:
    ranges = {move.place: move.skipped for move in moves if move.skipped}
    if not ranges:
        return
    yield "The group skips records that it hasn't settled. Those that are registered expire; the others are lost to it"
    yield "unless you replay them:"
    yield f"  waitreg replay {ranges_text(ranges)}"
