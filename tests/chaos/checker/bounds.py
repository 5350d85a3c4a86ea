"""P7: calls in flight, what is in flight, chunks of exports and memory keep to their bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import PROCESSORS, hits
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import DEAD_LETTERED, DISCARDED, EXPORTS, WaitEntry
from wait_registry.demo.calls import ABORTED, Call


@dataclass(frozen=True, slots=True)
class InFlight:
    """A record of one instance: its first and last registration, and when it can have let go of it at the earliest."""

    first: WaitEntry
    last: WaitEntry
    finished_ms: int


def in_flight(ledger: Ledger) -> Mapping[str, Sequence[InFlight]]:
    """Return what each instance had in flight.

    What was registered again by the same instance counts from the last time on. An id that several have registered has
    changed hands in between, at a moment that isn't seen from outside: it is skipped. Without calls nobody can tell
    when a record was finished, since the tombstone comes later: then there is nothing.
    """
    found: dict[str, list[InFlight]] = defaultdict(list)
    for entries in ledger.entries_of.values() if ledger.history.calls is not None else ():
        instances = instances_of(entries)
        if len(instances) == 1:
            numbers = [number for number, entry in enumerate(entries) if entry.registration is not None]
            last = numbers[-1]
            finished_ms = _finished_ms(ledger, entries[last], entries[last + 1] if last + 1 < len(entries) else None)
            found[instances.pop()].append(InFlight(entries[numbers[0]], entries[last], finished_ms))
    return found


def instances_of(entries: Iterable[WaitEntry]) -> set[str]:
    """Return who has made these registrations."""
    return {entry.registration.instance for entry in entries if entry.registration is not None}


def _finished_ms(ledger: Ledger, entry: WaitEntry, tombstone: WaitEntry | None) -> int:
    if tombstone is None:
        return max((look.ended_ms for look in ledger.history.looks), default=entry.append_ms)
    if tombstone.outcome == DEAD_LETTERED:
        causes: Sequence[int] = [letter.timestamp_ms for letter in ledger.letters_of_id.get(entry.wait_id, ())]
    else:
        calls = ledger.calls_of_id.get(entry.wait_id, ())
        causes = [call.finished_ms for call in calls if call.succeeded or tombstone.outcome == DISCARDED]
    possible = [moment_ms for moment_ms in causes if entry.append_ms <= moment_ms <= tombstone.append_ms]
    return min(possible, default=tombstone.append_ms)


# The clocks of processor, downstream and broker are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5


def bytes_in_flight(ledger: Ledger) -> Iterator[Violation]:
    """Find instances that took records although what they had in flight was as large as is allowed, or larger.

    How many records one fetch may bring is guessed by the product from the mean size of those before: that one fetch
    may pass the bound by as much as it brings. So what is judged is what was in flight at a fetch. That moment
    is exact: all registrations of one fetch are of one millisecond, in which their time to live begins. A registration
    that is renewed is no fetch, and may come while the bound is passed; so only the first one of an id is judged.
    """
    limits, told = ledger.history.limits, ledger.history.told
    if limits.prefetch_bytes is None or told is None:
        return
    for instance, held in in_flight(ledger).items():
        most, taken_ms = _most_before_a_fetch(ledger, held, told.ttl_ms)
        if most >= limits.prefetch_bytes:
            why = f"{most} at {words.time(taken_ms)}, when it took more, and {limits.prefetch_bytes} are allowed"
            yield Violation(Kind.BOUND, f"bytes in flight of {instance}", why)


def _most_before_a_fetch(ledger: Ledger, held: Sequence[InFlight], ttl_ms: int) -> tuple[int, int]:
    # What ends at a moment is over, and what begins at it is not there yet.
    ending, fetching, beginning = range(3)
    events: list[tuple[int, int, int]] = []
    for one in held:
        assert one.first.registration is not None and one.last.registration is not None
        size = ledger.history.input_bytes.get(one.first.registration.original, 0)
        since_ms, until_ms = one.last.registration.expires_at_ms - ttl_ms, one.finished_ms - ROUNDING_MS
        events.append((one.first.registration.expires_at_ms - ttl_ms, fetching, 0))
        if since_ms < until_ms:
            events += [(since_ms, beginning, size), (until_ms, ending, -size)]
    most = opened = taken_ms = 0
    for moment_ms, what, change in sorted(events):
        opened += change
        if what == fetching and opened > most:
            most, taken_ms = opened, moment_ms
    return most, taken_ms


def chunks(ledger: Ledger) -> Iterator[Violation]:
    """Find runs of export tombstones in the wait topic, with no transaction's end between them, that are too long.

    A transaction's end, commit or abort, is a record that no client shows: it leaves a gap in the offsets. A
    transaction of a sweeper is of one wait partition, and in each of them one comes after the other, since the next one
    isn't begun before the end of the one before is in the log. Processors have no transactions.
    """
    most = ledger.history.limits.chunk_rows
    if most is None:
        return
    log = sorted(ledger.history.wait_log, key=lambda entry: entry.place)
    for partition, entries in groupby(log, key=lambda entry: entry.partition):
        for count, last in _runs(entries):
            if count > most:
                why = f"{count} up to the {words.entry(last)} in one transaction, and {most} are allowed"
                yield Violation(Kind.BOUND, f"exports of wait partition {partition}", why)


def _runs(entries: Iterator[WaitEntry]) -> Iterator[tuple[int, WaitEntry]]:
    """Return for each transaction how many tombstones of exports it has, and its last one."""
    count, last, next_offset = 0, None, 0
    for entry in entries:
        if entry.offset != next_offset and last is not None:
            yield count, last
            count, last = 0, None
        next_offset = entry.offset + 1
        if entry.outcome in EXPORTS:
            count, last = count + 1, entry
    if last is not None:
        yield count, last


# The downstream notices a caller that has hung up, or died, when its loop comes round to it.
HANG_UP_MS = 250
# Killed and started again, or one more for a while: the one's last calls stand alongside the other's first.
OVERLAP_MS = 5_000


@dataclass(frozen=True, slots=True)
class Span:
    """Something open from ``from_ms`` to ``to_ms``."""

    from_ms: int
    to_ms: int


def bound(ledger: Ledger) -> Iterator[Violation]:
    """Find bounds passed."""
    yield from _calls(ledger)
    yield from _registrations(ledger)
    yield from bytes_in_flight(ledger)
    yield from chunks(ledger)
    limits = ledger.history.limits
    for sample in limits.samples:
        most = limits.rss_bytes.get(sample.name, limits.rss_bytes.get(sample.name.rpartition("-")[0]))
        if most is not None and sample.bytes > most:
            why = f"process {sample.pid} held {sample.bytes} bytes at {words.time(sample.ms)}, the limit is {most}"
            yield Violation(Kind.BOUND, f"memory of {sample.name}", why)


def peak(spans: Iterable[Span], explained: Iterable[Span] = (), each: int = 0) -> tuple[int, int]:
    """Return the most spans that are open at once, and since when; what ends at a moment is over at it.

    In each of the ``explained`` spans so many (``each``) don't count.
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


def _calls(ledger: Ledger) -> Iterator[Violation]:
    """Judge how many calls were open at once: of each instance, and of all.

    While a processor is killed, restarted or joins there may be those of one more; of each instance
    never. Which of several owners made a call isn't seen from outside: ids that changed hands count for all only. Nor
    is it seen when a caller has given up: of each instance a call counts for half of the time that it may take.
    """
    limits, told = ledger.history.limits, ledger.history.told
    spans = [Span(call.started_ms, _hung_up_ms(call)) for call in ledger.history.calls or ()]
    extra = [fault for fault in ledger.history.faults if hits(fault, *PROCESSORS)]
    near = [Span(fault.began_ms - OVERLAP_MS, fault.ended_ms + OVERLAP_MS) for fault in extra]
    most, since_ms = peak(spans, near, limits.max_in_flight)
    allowed = limits.max_in_flight * limits.processes
    if most > allowed:
        why = f"{most} at {words.time(since_ms)} beyond those that faults explain, and {allowed} are allowed"
        yield Violation(Kind.BOUND, "calls in flight", why)
        return
    of_instance: dict[str, list[Span]] = defaultdict(list)
    for wait_id, calls in ledger.calls_of_id.items() if told is not None else ():
        instances = instances_of(ledger.registrations_of_id.get(wait_id, ()))
        if len(instances) == 1:
            half_ms = told.attempt_ms // 2 if told is not None else 0
            of_instance[instances.pop()] += [
                Span(call.started_ms, min(_hung_up_ms(call), call.started_ms + half_ms)) for call in calls
            ]
    yield from _too_many("calls in flight", of_instance, limits.max_in_flight)


def _hung_up_ms(call: Call) -> int:
    return call.finished_ms - (HANG_UP_MS if call.status == ABORTED else 0)


def _registrations(ledger: Ledger) -> Iterator[Violation]:
    """Judge how many records each instance had in flight."""
    spans = {
        instance: [Span(one.last.append_ms, one.finished_ms) for one in held]
        for instance, held in in_flight(ledger).items()
    }
    yield from _too_many("registrations unfinished", spans, ledger.history.limits.prefetch)


def _too_many(what: str, of_instance: Mapping[str, Sequence[Span]], allowed: int) -> Iterator[Violation]:
    for instance, opened in of_instance.items():
        most, since_ms = peak(opened)
        if most > allowed:
            why = f"{most} at {words.time(since_ms)}, and {allowed} are allowed"
            yield Violation(Kind.BOUND, f"{what} by {instance}", why)
