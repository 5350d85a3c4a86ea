"""What the command prints about the moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wait_registry.cli.result_rows import render_rows
from wait_registry.cli.rewind.plan import Move
from wait_registry.cli.rewind.registered import Registered
from wait_registry.kafka.offset_ranges import ranges_text

_COLUMNS: Final = ("topic", "partition", "committed", "target", "handled_again", "skipped", "registered")


def report(moves: Sequence[Move], registered: Registered) -> Iterator[str]:
    """Yield the lines that show what the moves do.

    Args:
        moves: of all chosen partitions.
        registered: where the numbers of registered records come from.
    """
    yield from render_rows(_COLUMNS, [_row(move) for move in moves])
    yield "Counts are offsets: a log with gaps has fewer records."
    if registered.offsets is None:
        yield f"How many of them are registered now is unknown: {registered.missing}."
    elif registered.missing:
        yield f"Of those that are registered now, some may be missing here: {registered.missing}."
    yield from _deleted(moves)
    yield from _skipped(moves)


def _row(move: Move) -> tuple[object, ...]:
    topic, partition = move.place
    committed = "none" if move.committed is None else move.committed
    skipped = len(move.skipped) + move.deleted
    registered = "unknown" if move.registered is None else move.registered
    return topic, partition, committed, move.target, move.again, skipped, registered


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
