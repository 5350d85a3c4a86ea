"""A compacted wait topic makes no kept guarantee look broken, and hides no breach that the rest of it shows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.demo.breaches import Breach
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Published, fingerprint
from wait_registry.demo.reconciliation import Evidence, Reconciliation, reconcile
from wait_registry.demo.wait_log import DeadLetterSeen, WaitEntry

TOPIC = "orders"
CONTENT = fingerprint(b"k", b"v", [])
PLACE = (TOPIC, 0, 5)
RECORD = Published(*PLACE, 1000, CONTENT)
REGISTERED = WaitEntry(0, 10, 1000, "id-5", PLACE)
LETTER = DeadLetterSeen(PLACE, 1000, "expired", "id-5", (0, 10), 5000, CONTENT)
EXPIRED = WaitEntry(0, 20, 5001, "id-5", None, "expired")
DISCARDED = replace(EXPIRED, outcome="discarded")
IDS = {PLACE: "id-5"}
ANSWER = Call(1, 1100, 1200, 0.0, 0.1, "id-5", *PLACE, 1, 200, CONTENT.value or "")
# Both are left, so no cleaning has reached the second one.
YOUNG = (WaitEntry(0, 15, 1500, "id-6", None, "done"), WaitEntry(0, 16, 1600, "id-6", None, "done"))
LATER_MS = 10_000


def judged(
    log: Iterable[WaitEntry],
    *,
    letters: Sequence[DeadLetterSeen] = (LETTER,),
    calls: Sequence[Call] = (),
    kills_ms: Sequence[int] | None = None,
    kept_since_ms: int | None = None,
    knows_ids: bool = True,
) -> Reconciliation:
    ids = IDS if knows_ids else {}
    return reconcile(Evidence([RECORD], calls, letters, list(log), (), kills_ms, ids, kept_since_ms))


def breaches(result: Reconciliation) -> dict[Breach, int]:
    return {breach: count for breach, count in result.breaches.items() if count}


@pytest.mark.parametrize("knows_ids", [True, False])
def test_a_dead_letter_and_its_tombstone_are_a_pair_without_wait_record(knows_ids: bool) -> None:
    result = judged([EXPIRED], knows_ids=knows_ids)
    assert result.ok and result.whole
    assert result.dead_lettered == 1
    assert result.unjudged == {Breach.FALSELY_EXPORTED: 1}


DONE = replace(EXPIRED, outcome="done")


@pytest.mark.parametrize(
    ("log", "given", "outcome", "whole"),
    [
        pytest.param([DISCARDED], {"letters": ()}, "discarded", True, id="discarded, its tombstone alone"),
        pytest.param([DONE], {"letters": (), "calls": [ANSWER]}, "done", True, id="done, its tombstone alone"),
        pytest.param([], {"kept_since_ms": LATER_MS}, "dead_lettered", False, id="exported, no tombstone left"),
        pytest.param([], {"letters": (), "kept_since_ms": LATER_MS}, "gone", False, id="nothing left"),
        pytest.param([replace(DONE, offset=30)], {}, "dead_lettered", False, id="exported, its tombstone replaced"),
    ],
)
def test_what_compaction_explains_breaks_nothing(
    log: list[WaitEntry], given: dict[str, Any], outcome: str, whole: bool
) -> None:
    result = judged(log, **given)
    assert (result.ok, result.whole, getattr(result, outcome), result.lost) == (True, whole, 1, 0)


@pytest.mark.parametrize(
    ("log", "given", "found"),
    [
        pytest.param([DONE], {"letters": (), "kept_since_ms": LATER_MS}, {Breach.LOST: 1}, id="done and never handled"),
        pytest.param(
            [REGISTERED, DONE],
            {"letters": (), "kept_since_ms": LATER_MS, "knows_ids": False},
            {Breach.LOST: 1},
            id="never handled, its entries in the log",
        ),
        pytest.param([EXPIRED], {"letters": ()}, {Breach.LOST: 1, Breach.UNPAIRED: 1}, id="expired without a letter"),
        *(
            pytest.param([], {"kept_since_ms": kept_since_ms, **letters}, {breach: 1}, id="too young for compaction")
            for kept_since_ms in (None, 900)
            for letters, breach in (({}, Breach.UNPAIRED), ({"letters": ()}, Breach.LOST))
        ),
        *(
            pytest.param(log, {}, {Breach.UNPAIRED: 1}, id=why)
            for why, log in {
                "nothing was cleaned as far as the tombstone": [*YOUNG, EXPIRED],
                "nothing later is in the log": [replace(EXPIRED, offset=9)],
                "each partition is cleaned alone": [replace(EXPIRED, partition=1)],
                "the first uncleaned pair of any ID bounds what was cleaned": [
                    replace(YOUNG[0], offset=11),
                    replace(YOUNG[1], offset=12),
                    replace(YOUNG[0], wait_id="id-7", offset=13),
                    EXPIRED,
                    replace(YOUNG[0], wait_id="id-7", offset=30),
                ],
            }.items()
        ),
        pytest.param(
            YOUNG,
            {"letters": [replace(LETTER, registration=(0, 17))], "kept_since_ms": LATER_MS},
            {Breach.UNPAIRED: 1},
            id="exported above what was cleaned",
        ),
        pytest.param(
            [replace(DONE, offset=15, append_ms=1200), EXPIRED],
            {},
            {Breach.FALSELY_EXPORTED: 1},
            id="exported past a later entry",
        ),
    ],
)
def test_what_compaction_cannot_have_done_is_a_breach(
    log: list[WaitEntry], given: dict[str, Any], found: dict[Breach, int]
) -> None:
    assert breaches(judged(log, **given)) == found


@pytest.mark.parametrize("other", [replace(REGISTERED, offset=9), replace(REGISTERED, wait_id="id-6")])
def test_an_older_or_another_registration_in_its_place_is_a_breach(other: WaitEntry) -> None:
    assert breaches(judged([other, EXPIRED]))[Breach.UNPAIRED] == 1


def test_a_second_export_of_an_id_needs_its_own_tombstone() -> None:
    again = replace(REGISTERED, offset=30, append_ms=6000)
    letters = [LETTER, replace(LETTER, registration=(0, 30), time_ms=9000)]
    assert breaches(judged([EXPIRED, again], letters=letters)) == {Breach.UNPAIRED: 1, Breach.TABLES_DIFFER: 1}
    second = replace(EXPIRED, offset=40, append_ms=9001)
    assert judged([EXPIRED, again, second], letters=letters).ok
    assert judged([second], letters=letters).ok


def test_forgotten_is_not_judged_when_the_wait_record_is_gone() -> None:
    result = judged([EXPIRED], calls=[ANSWER], kills_ms=[])
    assert result.ok
    assert result.unjudged[Breach.FORGOTTEN] == 1
    assert breaches(judged([REGISTERED, EXPIRED], calls=[ANSWER], kills_ms=[])) == {Breach.FORGOTTEN: 1}


def test_a_redelivered_record_whose_next_id_is_unknown_is_not_lost() -> None:
    redelivered = replace(EXPIRED, outcome="redelivered")
    assert breaches(judged([REGISTERED, redelivered], letters=())) == {Breach.LOST: 1}
    assert judged([redelivered], letters=()).gone == 1


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


def cleaned(log: Sequence[WaitEntry], partition: int, end: int, tombstones_before_ms: int) -> list[WaitEntry]:
    """Do what Kafka's log cleaner does to a partition below an offset."""
    last = {entry.wait_id: entry.offset for entry in log if entry.partition == partition and entry.offset < end}
    return [
        entry
        for entry in log
        if entry.partition != partition
        or entry.offset >= end
        or (
            last[entry.wait_id] == entry.offset
            and (entry.original is not None or entry.append_ms >= tombstones_before_ms)
        )
    ]


@given(
    seed=st.integers(),
    records=st.integers(1, 12),
    cleanings=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 100)), max_size=4),
    kept_since_ms=st.none() | st.integers(0, 2500),
)
def test_compaction_breaks_no_kept_history(
    seed: int, records: int, cleanings: list[tuple[int, int]], kept_since_ms: int | None
) -> None:
    kept = kept_history(random.Random(seed), records)
    whole = reconcile(kept)
    assert whole.ok and whole.whole, whole.problems
    log = list(kept.wait_log)
    for partition, end in cleanings:
        log = cleaned(log, partition, end, kept_since_ms or 0)
    after = reconcile(replace(kept, wait_log=log, kept_since_ms=kept_since_ms))
    assert after.ok, after.problems
    known = (after.done, after.dead_lettered, after.done_and_dead_lettered, after.discarded, after.waiting, after.lost)
    assert sum(known) + after.gone == after.published
    assert (after.done, after.dead_lettered, after.waiting) == (whole.done, whole.dead_lettered, whole.waiting)
    if kept_since_ms is None:
        assert after.discarded == whole.discarded
