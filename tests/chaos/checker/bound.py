"""P7: calls in flight, registrations unfinished and memory keep to their bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import DEAD_LETTERED, DISCARDED, WaitEntry
from waitreg.calls import ABORTED

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
    limits = ledger.history.limits
    for sample in limits.samples:
        most = limits.rss_bytes.get(sample.name, limits.rss_bytes.get(sample.name.rpartition("-")[0]))
        if most is not None and sample.bytes > most:
            why = f"process {sample.pid} held {sample.bytes} bytes at {words.time(sample.ms)}, the limit is {most}"
            yield Violation(Kind.BOUND, f"memory of {sample.name}", why)


def peak(spans: Iterable[Span]) -> tuple[int, int]:
    """Return the most spans that are open at once, and since when; what ends at a moment is over at it."""
    changes = sorted(
        change for span in spans if span.to_ms > span.from_ms for change in ((span.from_ms, 1), (span.to_ms, -1))
    )
    most = opened = since_ms = 0
    for moment_ms, change in changes:
        opened += change
        if opened > most:
            most, since_ms = opened, moment_ms
    return most, since_ms


def _calls(ledger: Ledger) -> Iterator[Violation]:
    """Judge calls of living processes, apart from times when a processor is killed, restarted or joins."""
    limits = ledger.history.limits
    most_allowed = limits.max_in_flight * limits.processes
    spans = [
        Span(call.started_ms, call.finished_ms - (HANG_UP_MS if call.status == ABORTED else 0))
        for call in ledger.history.calls or ()
    ]
    extra = [fault for fault in ledger.history.faults if hits(fault, "processor", "visitor", "group")]
    calm = [span for span in spans if not any(overlaps(f, span.from_ms, span.to_ms, OVERLAP_MS) for f in extra)]
    for chosen, allowed, when in (
        (calm, most_allowed, ""),
        (spans, most_allowed + limits.max_in_flight * len(extra), f", {len(extra)} faults of processors allowed for"),
    ):
        most, since_ms = peak(chosen)
        if most > allowed:
            why = f"{most} at {words.time(since_ms)}, and {allowed} are allowed{when}"
            yield Violation(Kind.BOUND, "calls in flight", why)
            return


def _registrations(ledger: Ledger) -> Iterator[Violation]:
    """Judge what each instance had registered and not finished.

    An id that was registered more than once has changed hands in between, at a moment that isn't seen from outside: it
    is left out. Without calls nobody can tell when a record was finished: the tombstone comes later.
    """
    if ledger.history.calls is None:
        return
    spans: dict[str, list[Span]] = defaultdict(list)
    for entries in ledger.entries_of.values():
        first = entries[0]
        if first.registration is not None and all(entry.is_tombstone for entry in entries[1:]):
            finished_ms = _finished_ms(ledger, first, entries[1] if len(entries) > 1 else None)
            spans[first.registration.instance].append(Span(first.append_ms, finished_ms))
    allowed = ledger.history.limits.look_ahead
    for instance, opened in spans.items():
        most, since_ms = peak(opened)
        if most > allowed:
            why = f"{most} at {words.time(since_ms)}, and {allowed} are allowed"
            yield Violation(Kind.BOUND, f"registrations unfinished by {instance}", why)


def _finished_ms(ledger: Ledger, entry: WaitEntry, tombstone: WaitEntry | None) -> int:
    """Return when the instance can have let go of it at the earliest."""
    if tombstone is None:
        return max((look.ended_ms for look in ledger.history.looks), default=entry.append_ms)
    if tombstone.outcome == DEAD_LETTERED:
        causes: Sequence[int] = [letter.timestamp_ms for letter in ledger.letters_of_id.get(entry.wait_id, ())]
    else:
        calls = ledger.calls_of_id.get(entry.wait_id, ())
        causes = [call.finished_ms for call in calls if call.succeeded or tombstone.outcome == DISCARDED]
    possible = [moment_ms for moment_ms in causes if entry.append_ms <= moment_ms <= tombstone.append_ms]
    return min(possible, default=tombstone.append_ms)
