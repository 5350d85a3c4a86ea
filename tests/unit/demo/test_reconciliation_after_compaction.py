"""A compacted wait topic makes no kept guarantee look broken; where it hides an end, the evidence is refused."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.errors import ConfigurationError
from waitreg.downstream.calls import Call
from waitreg.load.manifest import Published, fingerprint
from waitreg.reconcile.breaches import Breach
from waitreg.reconcile.reconciliation import Evidence, Reconciliation, reconcile
from waitreg.reconcile.wait_log import DeadLetterSeen, WaitEntry

TOPIC = "orders"
CONTENT = fingerprint(b"k", b"v", [])
PLACE = (TOPIC, 0, 5)
RECORD = Published(*PLACE, 1000, CONTENT)
REGISTERED = WaitEntry(0, 10, 1000, "id-5", PLACE)
LETTER = DeadLetterSeen(PLACE, 1000, "expired", "id-5", (0, 10), 5000, CONTENT)
EXPIRED = WaitEntry(0, 20, 5001, "id-5", None, "expired")
DONE, DISCARDED, REDELIVERED = (replace(EXPIRED, outcome=end) for end in ("done", "discarded", "redelivered"))
ANSWER = Call(1, 1100, 1200, 0.0, 0.1, "id-5", *PLACE, 1, 200, CONTENT.value or "")


def judged(
    log: Iterable[WaitEntry], *, letters: Sequence[DeadLetterSeen] = (LETTER,), calls: Sequence[Call] = ()
) -> Reconciliation:
    return reconcile(Evidence([RECORD], calls, letters, list(log), (), [], {PLACE: "id-5"}))


def breaches(result: Reconciliation) -> dict[Breach, int]:
    return {breach: count for breach, count in result.breaches.items() if count}


@pytest.mark.parametrize(
    ("log", "given", "outcome"),
    [
        pytest.param([DISCARDED], {}, "discarded", id="discarded, its tombstone alone"),
        pytest.param([DONE], {"calls": [ANSWER]}, "done", id="done, its tombstone alone"),
        pytest.param([], {"calls": [ANSWER]}, "done", id="done, nothing left"),
    ],
)
def test_an_end_known_without_registration_counts(log: list[WaitEntry], given: dict[str, Any], outcome: str) -> None:
    result = judged(log, letters=(), **given)
    assert (result.ok, getattr(result, outcome)) == (True, 1)


@pytest.mark.parametrize(
    ("log", "letters"),
    [
        pytest.param([EXPIRED], (LETTER,), id="exported, its tombstone alone"),
        pytest.param([replace(DONE, offset=30)], (LETTER,), id="exported, its tombstone replaced"),
        pytest.param([replace(REGISTERED, offset=30)], (LETTER,), id="exported and registered again"),
        pytest.param([REDELIVERED], (), id="redelivered under an ID that is unknown"),
    ],
)
def test_an_end_that_needs_what_was_removed_is_refused(log: list[WaitEntry], letters: Sequence[DeadLetterSeen]) -> None:
    with pytest.raises(ConfigurationError, match=r"1 ends depend on, for instance .*orders/0@5"):
        judged(log, letters=letters)


@pytest.mark.parametrize(
    ("log", "given", "found"),
    [
        pytest.param([DONE], {"letters": ()}, {Breach.LOST: 1}, id="done and never handled"),
        pytest.param([REGISTERED, REDELIVERED], {"letters": ()}, {Breach.LOST: 1}, id="redelivered to nowhere"),
        pytest.param([EXPIRED], {"letters": ()}, {Breach.LOST: 1, Breach.UNPAIRED: 1}, id="expired without a letter"),
        pytest.param([], {}, {Breach.UNPAIRED: 1}, id="exported, nothing left"),
        pytest.param([replace(EXPIRED, offset=9)], {}, {Breach.UNPAIRED: 1}, id="nothing later is in the log"),
        pytest.param([replace(EXPIRED, partition=1)], {}, {Breach.UNPAIRED: 1}, id="each partition is cleaned alone"),
        pytest.param(
            [replace(REGISTERED, offset=9), EXPIRED], {}, {Breach.UNPAIRED: 1}, id="an older registration is left"
        ),
        pytest.param([REGISTERED, EXPIRED], {"calls": [ANSWER]}, {Breach.FORGOTTEN: 1}, id="done and expired"),
    ],
)
def test_what_compaction_cannot_have_done_is_a_breach(
    log: list[WaitEntry], given: dict[str, Any], found: dict[Breach, int]
) -> None:
    assert breaches(judged(log, **given)) == found


def kept_history(chance: random.Random, records: int) -> Evidence:
    """Return a kept history: records end in any way, some registered twice, over two partitions."""
    events: list[tuple[int, int, str]] = []
    for number in range(records):
        end = chance.choice(["done", "discarded", "expired", "dead_lettered", "standing"])
        start = chance.randrange(1000)
        times = sorted(chance.sample(range(start, start + 1000), 2 * chance.choice([1, 1, 2])))
        for time_ms in times[::2]:
            events.append((time_ms, number, "wait"))
        for time_ms in times[1::2] if end != "standing" else ():
            events.append((time_ms, number, end))
    log: list[WaitEntry] = []
    calls, letters = [], []
    latest: dict[int, tuple[int, int]] = {}
    for time_ms, number, what in sorted(events):
        place, partition, offset = (TOPIC, 0, number), number % 2, len(log) * 2
        original = place if what == "wait" else None
        log.append(WaitEntry(partition, offset, time_ms, f"id-{number}", original, None if original else what))
        if what == "wait":
            latest[number] = (partition, offset)
        elif what == "done":
            calls.append(replace(ANSWER, offset=number))
        elif what in ("expired", "dead_lettered"):
            letters.append(DeadLetterSeen(place, 0, what, f"id-{number}", latest[number], time_ms - 1, CONTENT))
    published = [Published(TOPIC, 0, number, 0, CONTENT) for number in range(records)]
    ids = {record.coordinates: f"id-{record.offset}" for record in published}
    standing = {f"id-{number}" for _, number, what in events} - {entry.wait_id for entry in log if not entry.original}
    return Evidence(published, calls, letters, log, standing, wait_ids=ids)


def cleaned(log: Sequence[WaitEntry], partition: int, end: int) -> list[WaitEntry]:
    """Do what Kafka's log cleaner does to a partition below an offset."""
    last = {entry.wait_id: entry.offset for entry in log if entry.partition == partition and entry.offset < end}
    return [
        entry
        for entry in log
        if entry.partition != partition or entry.offset >= end or last[entry.wait_id] == entry.offset
    ]


@given(
    seed=st.integers(),
    records=st.integers(1, 12),
    cleanings=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 100)), max_size=4),
)
def test_compaction_breaks_no_kept_history(seed: int, records: int, cleanings: list[tuple[int, int]]) -> None:
    kept = kept_history(random.Random(seed), records)
    whole = reconcile(kept)
    assert whole.ok, whole.problems
    log = list(kept.wait_log)
    for partition, end in cleanings:
        log = cleaned(log, partition, end)
    try:
        after = reconcile(replace(kept, wait_log=log))
    except ConfigurationError:
        return
    assert after == whole, after.problems
