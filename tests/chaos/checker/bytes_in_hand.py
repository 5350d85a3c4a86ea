"""P7: whoever holds as many bytes as it may takes nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.checker import words
from tests.chaos.checker.in_hand import InHand, in_hand
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation

# The clocks of processor, downstream and broker are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5


def bytes_in_hand(ledger: Ledger) -> Iterator[Violation]:
    """Find instances that took records although what they had in hand was as large as is allowed, or larger.

    How many records one fetch may bring is guessed by the product from the mean size of those before: that one fetch
    may pass the bound by as much as it brings. So what is judged is what was in hand when a fetch was made. That moment
    is exact: all registrations of one fetch are of one millisecond, in which their time to live begins. A registration
    that is renewed is no fetch, and may come while the bound is passed; so only the first one of an id is judged.
    """
    limits, told = ledger.history.limits, ledger.history.told
    if limits.look_ahead_bytes is None or told is None:
        return
    for instance, held in in_hand(ledger).items():
        most, taken_ms = _most_before_a_fetch(ledger, held, told.ttl_ms)
        if most >= limits.look_ahead_bytes:
            why = f"{most} at {words.time(taken_ms)}, when it took more, and {limits.look_ahead_bytes} are allowed"
            yield Violation(Kind.BOUND, f"bytes in hand of {instance}", why)


def _most_before_a_fetch(ledger: Ledger, held: Sequence[InHand], ttl_ms: int) -> tuple[int, int]:
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
