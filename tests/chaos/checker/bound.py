"""P7: calls in flight, what is in hand, chunks of exports and memory keep to their bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.checker import words
from tests.chaos.checker.bytes_in_hand import bytes_in_hand
from tests.chaos.checker.chunks import chunks
from tests.chaos.checker.disturbance import PROCESSORS, hits
from tests.chaos.checker.in_hand import in_hand, instances_of
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from wait_registry.demo.calls import ABORTED, Call

# The downstream notices a caller that has hung up, or died, when its loop comes round to it.
HANG_UP_MS = 250
# Killed and started again, or one more for a while: the one's last calls stand beside the other's first.
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
    yield from bytes_in_hand(ledger)
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

    For a while beside a processor that is killed, restarted or joins there may be those of one more; of each instance
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
    """Judge how many records each instance had in hand."""
    spans = {
        instance: [Span(one.last.append_ms, one.finished_ms) for one in held]
        for instance, held in in_hand(ledger).items()
    }
    yield from _too_many("registrations unfinished", spans, ledger.history.limits.look_ahead)


def _too_many(what: str, of_instance: Mapping[str, Sequence[Span]], allowed: int) -> Iterator[Violation]:
    for instance, opened in of_instance.items():
        most, since_ms = peak(opened)
        if most > allowed:
            why = f"{most} at {words.time(since_ms)}, and {allowed} are allowed"
            yield Violation(Kind.BOUND, f"{what} by {instance}", why)
