"""P7: calls at once, chunks of exports and memory keep to their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby

from tests.chaos.checker.ledger import Finding, Ledger, grouped
from tests.chaos.history.entries import EXPORTS
from waitreg.downstream.calls import ABORTED, Call

MIB = 1 << 20
# What `spark.driver_memory` gives by default, which no run changes.
HEAP_BYTES = 512 * MIB
# Of a JVM except its heap: Spark's classes; compiled code; a hundred threads' stacks, symbols, what malloc keeps; what
# is on its way to Python, of one batch (`sink.max_batch_bytes`) or chunk.
JVM_OTHER_BYTES = (160 + 96 + 64 + 32) * MIB
# Python of the sink in a run of minutes: the interpreter with pyspark, pyarrow and three clients; a batch ten times: as
# it comes, condensed and gathered while another is sorted, decoded, on its way out, and malloc's gaps between them
# (docs/decisions/0018). Of the sweeper: the interpreter with its clients; Spark's daemon, and a worker
# for each core of `local[2]`.
SINK_PYTHON_BYTES = (160 + 10 * 32) * MIB
SWEEPER_PYTHON_BYTES = (96 + 64 + 2 * 96) * MIB
# All processes of a service together at one moment of a random run.
MOST_BYTES: Mapping[str, int] = {
    "processor": 300_000_000,
    "sink": HEAP_BYTES + JVM_OTHER_BYTES + SINK_PYTHON_BYTES,
    "sweeper": HEAP_BYTES + JVM_OTHER_BYTES + SWEEPER_PYTHON_BYTES,
}
# The downstream notices a caller that has hung up, or died, in the next iteration of its loop.
HANG_UP_MS = 250


def bound(ledger: Ledger) -> Iterator[Finding]:
    """Find what passes a bound."""
    for judge in (_calls, _chunks, _memory):
        yield from judge(ledger)


def _calls(ledger: Ledger) -> Iterator[Finding]:
    """Judge how many calls of each process were open at once.

    The log doesn't show when a caller has given up, so a call counts for half of the time that it may take.
    """
    allowed = ledger.history.settings.processor.most_in_flight
    for process, calls in grouped(ledger.history.calls or (), lambda call: call.path).items():
        most = _most_at_once(calls, ledger.attempt_ms // 2)
        if most > allowed:
            yield f"calls in flight by {process}", f"{most} at once, and {allowed} are allowed"


def _most_at_once(calls: Iterable[Call], most_ms: int) -> int:
    changes: list[tuple[int, int]] = []
    for call in calls:
        ended_ms = min(call.finished_ms - (HANG_UP_MS if call.status == ABORTED else 0), call.started_ms + most_ms)
        if ended_ms > call.started_ms:
            changes += [(call.started_ms, 1), (ended_ms, -1)]
    # What ends at a moment is over at it.
    return max(accumulate(change for _, change in sorted(changes)), default=0)


def _chunks(ledger: Ledger) -> Iterator[Finding]:
    """Find transactions with too many export tombstones; the end of each leaves a gap in the offsets.

    A sweeper's transaction is of one wait partition, and begins only when the end of the one before is in the log.
    """
    most = ledger.history.settings.sweeper.chunk_rows
    log = sorted(ledger.history.wait_log, key=lambda entry: entry.place)
    for partition, entries in groupby(log, key=lambda entry: entry.partition):
        # Without gaps, offset and number grow alike.
        numbered = groupby(enumerate(entries), key=lambda pair: pair[1].offset - pair[0])
        for _, run in numbered:
            exports = [entry for _, entry in run if entry.outcome in EXPORTS]
            if len(exports) > most:
                why = f"{len(exports)} up to the {exports[-1]} in one transaction, and {most} are allowed"
                yield f"exports of wait partition {partition}", why


def _memory(ledger: Ledger) -> Iterator[Finding]:
    for sample in ledger.history.samples:
        most = MOST_BYTES.get(sample.name.rpartition("-")[0])
        if most is not None and sample.bytes > most:
            yield f"memory of {sample.name}", f"{sample.bytes} bytes, and {most} are allowed"
