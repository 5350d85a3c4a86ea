"""O1: where records have an order, each is called when the earlier ones of its key, or partition, are settled."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.chaos.checker.bounds import ROUNDING_MS
from tests.chaos.checker.ledger import Finding, Ledger, grouped
from tests.chaos.history.entries import at, clock
from tests.chaos.history.history import Input
from wait_registry.demo.manifest import Coordinates
from wait_registry.settings.processor import Ordering


def out_of_order(ledger: Ledger) -> Iterator[Finding]:
    """Find first deliveries that were called before an earlier record of their lane was settled, by any process.

    A committed offset passes settled records only. So a process that calls a record has polled the earlier ones, or
    begins behind them, and the rule holds over all processes.
    """
    ordering = ledger.history.settings.processor.ordering
    if ordering is Ordering.UNORDERED:
        return
    for records in grouped(ledger.history.inputs, lambda record: _lane(record, ordering)).values():
        settled_ms, last = -math.inf, ""
        for record in sorted(records, key=lambda record: record.place):
            calls = ledger.calls_of_id.get(ledger.id_of[record.place], ())
            began_ms = min((call.started_ms for call in calls), default=math.inf)
            if began_ms + ROUNDING_MS < settled_ms:
                when = "never" if math.isinf(settled_ms) else f"at {clock(int(settled_ms))}"
                yield record.place, f"was called at {clock(int(began_ms))}, and {last} was settled {when}"
            own_ms = _settled_ms(ledger, record.place)
            if own_ms > settled_ms:
                settled_ms, last = own_ms, at(record.place)


def _lane(record: Input, ordering: Ordering) -> tuple[str, int, str] | None:
    key = record.content.key if ordering is Ordering.KEY else ""
    return None if key is None else (*record.place[:2], key)


def _settled_ms(ledger: Ledger, place: Coordinates) -> float:
    wait_id = ledger.id_of[place]
    calls = [call.finished_ms for call in ledger.calls_of_id.get(wait_id, ()) if ledger.settles(call)]
    published = [
        one.append_ms for letters in (ledger.letters_of_id, ledger.retries_of_id) for one in letters.get(wait_id, ())
    ]
    return min((*calls, *published), default=math.inf)
