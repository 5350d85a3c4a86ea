"""P1: no handler is called for a record before its registration stands in the log."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation

# The downstream's clock and the broker's are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5


def early_call(ledger: Ledger) -> Iterator[Violation]:
    """Find calls that began before the first registration of their id was appended, or without any."""
    for wait_id, calls in ledger.calls_of_id.items():
        entries = ledger.registrations_of_id.get(wait_id, ())
        first = min(entries, key=lambda entry: entry.append_ms, default=None)
        for call in calls:
            if first is None or call.started_ms + ROUNDING_MS < first.append_ms:
                behind = "and nothing was ever registered" if first is None else f"before its {words.entry(first)}"
                why = f"call {call.number} began at {words.time(call.started_ms)}, {behind}"
                yield Violation(Kind.EARLY_CALL, ledger.about(wait_id), why)
