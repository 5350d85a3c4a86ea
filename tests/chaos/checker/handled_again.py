"""P1: a record is handled again only when it has been registered again."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation


def handled_again(ledger: Ledger) -> Iterator[Violation]:
    """Find ids that were called more often than their registrations have tries.

    Within its tries a record may be called again although it was answered: the answer may have come too late for its
    caller, which isn't seen from outside. So where there are two tries, two calls are never too many.
    """
    told = ledger.history.told
    if told is None:
        return
    for wait_id, calls in ledger.calls_of_id.items():
        registered = len(ledger.registrations_of_id.get(wait_id, ()))
        # Without any it is `early_call`'s.
        if registered and len(calls) > registered * told.tries:
            why = f"{len(calls)} calls, registered {registered} times for {told.tries} tries each"
            yield Violation(Kind.HANDLED_AGAIN, ledger.about(wait_id), why)
