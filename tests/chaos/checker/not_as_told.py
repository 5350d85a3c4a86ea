"""P4: a registration says what its processor was told: when it expires, and what becomes of it then."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import explains
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.stillness import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import Registration, WaitEntry
from tests.chaos.history.history import Told

# The processor's clock and the broker's are one host's.
ROUNDING_MS = 50
# From the moment when the processor counts the time to live from to the broker: milliseconds, or a busy machine's
# hiccup.
ON_ITS_WAY_MS = 5_000


def not_as_told(ledger: Ledger) -> Iterator[Violation]:
    """Find registrations that differ from the run's settings, and expiries that don't follow from the time to live.

    What took long to reach the broker, while the broker or its own process had a fault, has less time left; a time in
    which the machine stood still doesn't count.
    """
    told = ledger.history.told
    if told is None:
        return
    for entry in ledger.registrations:
        said = entry.registration
        assert said is not None
        if why := _differs(said, told) or _lives(ledger, entry, said, told):
            yield Violation(Kind.NOT_AS_TOLD, said.original, f"{words.entry(entry)}: {why}")


def _differs(said: Registration, told: Told) -> str:
    fields = {
        "policy": (said.expiry_policy, told.expiry_policy or said.expiry_policy),
        "max_deliveries": (said.max_deliveries, told.max_deliveries),
        "dead_letter_topic": (said.dead_letter_topic, told.dead_letter_topic),
    }
    return "; ".join(
        f"{name} is {seen}, told was {wanted}" for name, (seen, wanted) in fields.items() if seen != wanted
    )


def _lives(ledger: Ledger, entry: WaitEntry, said: Registration, told: Told) -> str:
    from_ms = said.expires_at_ms - told.ttl_ms
    late_ms = entry.append_ms - from_ms
    expiry = f"it expires at {words.time(said.expires_at_ms)}, and lives {told.ttl_ms} ms"
    if late_ms < -ROUNDING_MS:
        return f"{expiry}: {-late_ms} ms too long"
    if late_ms - stood_still_ms(ledger.looks, from_ms, entry.append_ms) <= ON_ITS_WAY_MS:
        return ""
    explained = any(explains(fault, [said.instance], from_ms, entry.append_ms) for fault in ledger.history.faults)
    return "" if explained else f"{expiry}: {late_ms} ms too short, and no fault explains that"
