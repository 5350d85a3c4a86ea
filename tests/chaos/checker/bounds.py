"""P7: calls and records in flight, chunks of exports and memory keep to their bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from tests.chaos.checker.disturbance import PROCESSORS, hits
from tests.chaos.checker.ledger import Finding, Ledger
from tests.chaos.history.entries import EXPORTS, Registration, WaitEntry, clock
from wait_registry.demo.calls import ABORTED, Call
from wait_registry.records.tombstone import Outcome

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
# The clocks of processor, downstream and broker are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5
# The downstream notices a caller that has hung up, or died, in the next iteration of its loop.
HANG_UP_MS = 250
# A processor is killed and started again, or another one joins: calls of both overlap.
OVERLAP_MS = 5_000


class InFlight(NamedTuple):
    """A record of one instance: its first and last registration, and when it can have finished at the earliest."""

    first: Registration
    last: Registration
    finished_ms: int


class Span(NamedTuple):
    from_ms: int
    to_ms: int


def bound(ledger: Ledger) -> Iterator[Finding]:
    """Find what passes a bound."""
    for judge in (_calls, _registrations, _bytes, _chunks, _memory):
        yield from judge(ledger)


def _calls(ledger: Ledger) -> Iterator[Finding]:
    """Judge how many calls were open at once: of all, except one more processor's near faults, and of each instance.

    The log doesn't show which of several owners made a call, so IDs that changed hands count for all only, and so does
    a call before its registration: an earlier owner that registered nothing may have made it. Nor does the log show
    when a caller has given up: of each instance a call counts for half of the time that it may take.
    """
    history, slots = ledger.history, ledger.history.settings.processor.most_in_flight
    spans = [Span(call.started_ms, _hung_up_ms(call)) for call in history.calls or ()]
    extra = [fault for fault in history.faults if hits(fault, *PROCESSORS)]
    near = [Span(fault.began_ms - OVERLAP_MS, fault.ended_ms + OVERLAP_MS) for fault in extra]
    most, since_ms = _peak(spans, near, slots)
    allowed = slots * history.processes
    if most > allowed:
        why = f"{most} at {clock(since_ms)} beyond those that faults explain, and {allowed} are allowed"
        yield "calls in flight", why
        return
    of_instance: dict[str, list[Span]] = defaultdict(list)
    for wait_id, calls in ledger.calls_of_id.items():
        instances = ledger.instances_of(wait_id)
        if len(instances) == 1:
            half_ms, from_ms = ledger.attempt_ms // 2, ledger.registrations_of_id[wait_id][0].append_ms
            own = (call for call in calls if call.started_ms >= from_ms)
            ends = ((call.started_ms, min(_hung_up_ms(call), call.started_ms + half_ms)) for call in own)
            of_instance[instances.pop()] += [Span(*end) for end in ends]
    yield from _too_many("calls in flight", of_instance, slots)


def _hung_up_ms(call: Call) -> int:
    return call.finished_ms - (HANG_UP_MS if call.status == ABORTED else 0)


def _registrations(ledger: Ledger) -> Iterator[Finding]:
    """Judge how many records each instance had in flight."""
    held = {
        name: [Span(one.last.append_ms, one.finished_ms) for one in own] for name, own in _in_flight(ledger).items()
    }
    yield from _too_many("registrations unfinished", held, ledger.history.settings.processor.prefetch_max)


def _in_flight(ledger: Ledger) -> Mapping[str, Sequence[InFlight]]:
    """Return what each instance had in flight; nothing without calls, since only these show when a record was finished.

    An ID that several have registered has changed hands at a moment that can't be seen from outside: it is skipped.
    """
    found: dict[str, list[InFlight]] = defaultdict(list)
    for entries in ledger.entries_of.values() if ledger.history.calls is not None else ():
        own = [(number, entry) for number, entry in enumerate(entries) if isinstance(entry, Registration)]
        if len({entry.instance for _, entry in own}) == 1:
            number, last = own[-1]
            finished_ms = _finished_ms(ledger, last, entries[number + 1] if number + 1 < len(entries) else None)
            found[last.instance].append(InFlight(own[0][1], last, finished_ms))
    return found


def _finished_ms(ledger: Ledger, entry: Registration, tombstone: WaitEntry | None) -> int:
    if tombstone is None:
        return max((poll.ended_ms for poll in ledger.history.polls), default=entry.append_ms)
    if tombstone.outcome in (Outcome.DEAD_LETTERED, Outcome.RETRIED):
        written_of_id = ledger.retries_of_id if tombstone.outcome == Outcome.RETRIED else ledger.letters_of_id
        causes = [written.append_ms for written in written_of_id.get(entry.wait_id, ())]
    else:
        calls = ledger.calls_of_id.get(entry.wait_id, ())
        causes = [call.finished_ms for call in calls if call.succeeded or tombstone.outcome == Outcome.DISCARDED]
    # The call may have ended while its registration was on its way.
    registered_ms = entry.expires_at_ms - ledger.ttl_ms
    possible = [moment_ms for moment_ms in causes if registered_ms <= moment_ms <= tombstone.append_ms]
    return min(possible, default=tombstone.append_ms)


def _bytes(ledger: Ledger) -> Iterator[Finding]:
    """In eager, find instances that fetched records although they held as many bytes as are allowed, or more.

    All registrations of one fetch are of one millisecond, in which their time to live begins. A renewed registration
    is no fetch, so only the first one of an ID is judged.
    """
    if not ledger.eager:
        return
    allowed = ledger.history.settings.processor.prefetch_max_bytes
    for instance, held in _in_flight(ledger).items():
        most, taken_ms = _most_before_a_fetch(ledger, held)
        if most >= allowed:
            why = f"{most} at {clock(taken_ms)}, when it took more, and {allowed} are allowed"
            yield f"bytes in flight of {instance}", why


def _most_before_a_fetch(ledger: Ledger, held: Iterable[InFlight]) -> tuple[int, int]:
    # What ends at a moment is over, and what begins at it is not there yet.
    ending, fetching, beginning = range(3)
    events: list[tuple[int, int, int]] = []
    for one in held:
        size = ledger.inputs[one.first.original].bytes if one.first.original in ledger.inputs else 0
        since_ms, until_ms = one.last.expires_at_ms - ledger.ttl_ms, one.finished_ms - ROUNDING_MS
        events.append((one.first.expires_at_ms - ledger.ttl_ms, fetching, 0))
        if since_ms < until_ms:
            events += [(since_ms, beginning, size), (until_ms, ending, -size)]
    most = opened = taken_ms = 0
    for moment_ms, what, change in sorted(events):
        opened += change
        if what == fetching and opened > most:
            most, taken_ms = opened, moment_ms
    return most, taken_ms


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
            yield f"memory of {sample.name}", f"{sample.bytes} bytes at {clock(sample.ms)}, and {most} are allowed"


def _too_many(what: str, of_instance: Mapping[str, Sequence[Span]], allowed: int) -> Iterator[Finding]:
    for instance, spans in of_instance.items():
        most, since_ms = _peak(spans)
        if most > allowed:
            yield f"{what} by {instance}", f"{most} at {clock(since_ms)}, and {allowed} are allowed"


def _peak(spans: Iterable[Span], explained: Iterable[Span] = (), each: int = 0) -> tuple[int, int]:
    """Return the most spans that are open at once, and since when; what ends at a moment is over at it.

    In each of the ``explained`` spans ``each`` of them don't count.
    """
    weighed = [*((span, 1) for span in spans), *((span, -each) for span in explained)]
    changes = sorted(
        change
        for span, weight in weighed
        if span.to_ms > span.from_ms
        for change in ((span.from_ms, weight), (span.to_ms, -weight))
    )
    most = opened = since_ms = 0
    for moment_ms, change in changes:
        opened += change
        if opened > most:
            most, since_ms = opened, moment_ms
    return most, since_ms
