"""O1: where records have an order, each is called when the earlier ones of its key, or partition, are settled."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checker.ledger import ROUNDING_MS, Finding, Ledger, grouped
from tests.chaos.history.entries import at, clock
from tests.chaos.history.history import Input, mode_of
from wait_registry.demo.manifest import Coordinates
from wait_registry.settings.processor import Ordering

ALL = "all processes"


def out_of_order(ledger: Ledger) -> Iterator[Finding]:
    """Find first deliveries that were called before an earlier record of their lane was settled.

    Where all processes run in `off`, a committed offset passes settled records only. So a process that calls a record
    has polled the earlier ones, or begins behind them, and the rule holds over all processes. A commit of another mode
    may pass what isn't settled. Then the rule holds for each process in `off` and what it has called or registered.
    """
    ordering = ledger.history.settings.processor.ordering
    if ordering is Ordering.UNORDERED:
        return
    for records in grouped(ledger.history.inputs, lambda record: _lane(record, ordering)).values():
        settled: defaultdict[str, tuple[float, str]] = defaultdict(lambda: (-math.inf, ""))
        for record in sorted(records, key=lambda record: record.place):
            own_ms = _settled_ms(ledger, record.place)
            for process, began_ms in _handled(ledger, record.place).items():
                settled_ms, last = settled[process]
                if began_ms + ROUNDING_MS < settled_ms:
                    when = "never" if math.isinf(settled_ms) else f"at {clock(int(settled_ms))}"
                    called = f"was called by {process} at {clock(int(began_ms))}"
                    yield record.place, f"{called}, and {last} was settled {when}"
                settled[process] = max(settled[process], (own_ms, at(record.place)))


def _lane(record: Input, ordering: Ordering) -> tuple[str, int, str] | None:
    key = record.content.key if ordering is Ordering.KEY else ""
    return None if key is None else (*record.place[:2], key)


def _handled(ledger: Ledger, place: Coordinates) -> dict[str, float]:
    """Return when each process in `off` first called a record; never, if it only registered it."""
    wait_id, modes = ledger.id_of[place], ledger.history.modes
    calls = ledger.calls_of_id.get(wait_id, ())
    if set(modes) == {"off"}:
        return {ALL: min((call.started_ms for call in calls), default=math.inf)}
    began: dict[str, float] = dict.fromkeys(ledger.instances_of(wait_id), math.inf)
    for call in calls:
        began[call.path] = min(call.started_ms, began.get(call.path, math.inf))
    return {process: ms for process, ms in began.items() if mode_of(int(process.rpartition("/")[2]), modes) == "off"}


def _settled_ms(ledger: Ledger, place: Coordinates) -> float:
    wait_id = ledger.id_of[place]
    calls = [call.finished_ms for call in ledger.calls_of_id.get(wait_id, ()) if ledger.settles(call)]
    published = [
        one.append_ms for letters in (ledger.letters_of_id, ledger.retries_of_id) for one in letters.get(wait_id, ())
    ]
    return min((*calls, *published), default=math.inf)
