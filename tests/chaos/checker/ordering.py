"""O1: where records have an order, each is called when the earlier ones of its key, or partition, are settled."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.checker.ledger import ROUNDING_MS, Finding, Ledger, grouped
from tests.chaos.history.entries import at, clock
from tests.chaos.history.history import Act, Input, mode_of
from wait_registry.settings.processor import Ordering
from waitreg.load.manifest import Coordinates

ALL = "all processes"


def out_of_order(ledger: Ledger) -> Iterator[Finding]:
    """Find first deliveries that were called before an earlier record of their lane was settled.

    Where all processes run in `off`, a committed offset passes settled records only. So a process that calls a record
    has polled the earlier ones, or begins behind them, and the rule holds over all processes. A commit of another mode
    may pass what isn't settled. Then the rule holds for each process in `off` and what it has called or registered,
    unless a process in another mode has registered that later: the partition had moved.
    """
    ordering, modes = ledger.history.settings.processor.ordering, ledger.history.modes
    if ordering is Ordering.UNORDERED:
        return
    for records in grouped(ledger.history.inputs, lambda record: _lane(record, ordering)).values():
        settled: defaultdict[str, tuple[float, str]] = defaultdict(lambda: (-math.inf, ""))
        for record in sorted(records, key=lambda record: record.place):
            wait_id, own_ms = ledger.id_of[record.place], _settled_ms(ledger, record.place)
            registered = ledger.registrations_of_id.get(wait_id, ())
            moved_ms = max((one.append_ms for one in registered if not _is_off(one.instance, modes)), default=-math.inf)
            for process, (since_ms, called_ms) in _handled(ledger, wait_id).items():
                settled_ms, last = settled[process]
                if called_ms + ROUNDING_MS < settled_ms:
                    when = "never" if math.isinf(settled_ms) else f"at {clock(int(settled_ms))}"
                    called = f"was called by {process} at {clock(int(called_ms))}"
                    yield record.place, f"{called}, and {last} was settled {when}"
                if moved_ms < since_ms:
                    settled[process] = max(settled[process], (own_ms, at(record.place)))


def _lane(record: Input, ordering: Ordering) -> tuple[str, int, str] | None:
    key = record.content.key if ordering is Ordering.KEY else ""
    return None if key is None else (*record.place[:2], key)


def _handled(ledger: Ledger, wait_id: str) -> dict[str, tuple[float, float]]:
    """Return since when each process in `off` had a record, as is known, and when it called it first, if it did."""
    calls, modes = ledger.calls_of_id.get(wait_id, ()), ledger.history.modes
    if set(modes) == {"off"}:
        return {ALL: (0, min((call.started_ms for call in calls), default=math.inf))}
    found: dict[str, tuple[float, float]] = {}
    for entry in ledger.registrations_of_id.get(wait_id, ()):
        since_ms, called_ms = found.get(entry.instance, (math.inf, math.inf))
        found[entry.instance] = min(since_ms, entry.append_ms), called_ms
    for call in calls:
        since_ms, called_ms = found.get(call.path, (math.inf, math.inf))
        found[call.path] = min(since_ms, call.started_ms), min(called_ms, call.started_ms)
    return {process: times for process, times in found.items() if _is_off(process, modes)}


def _is_off(process: str, modes: Sequence[str]) -> bool:
    return mode_of(int(process.rpartition("/")[2]), modes) == "off"


def _settled_ms(ledger: Ledger, place: Coordinates) -> float:
    wait_id = ledger.id_of[place]
    calls = [call.finished_ms for call in ledger.calls_of_id.get(wait_id, ()) if ledger.settles(call)]
    published = [
        one.append_ms for letters in (ledger.letters_of_id, ledger.retries_of_id) for one in letters.get(wait_id, ())
    ]
    # What an operator has the group pass over, no process has polled.
    passed = [from_ms for act, from_ms, _ in ledger.acts.get(place, ()) if act is Act.PASSED]
    return min((*calls, *published, *passed), default=math.inf)
