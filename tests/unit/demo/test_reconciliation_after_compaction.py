"""A compacted wait topic makes no kept guarantee look broken, and hides no breach that the rest of it shows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

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


def test_a_discarded_record_is_discarded_by_its_tombstone_alone() -> None:
    result = judged([DISCARDED], letters=())
    assert result.ok and result.whole
    assert result.discarded == 1


def test_a_done_record_whose_wait_record_is_compacted_away_stays_done() -> None:
    result = judged([replace(EXPIRED, outcome="done")], letters=(), calls=[ANSWER])
    assert result.ok and result.whole and result.done == 1


def test_a_done_tombstone_alone_of_an_unhandled_record_is_a_loss() -> None:
    result = judged([replace(EXPIRED, outcome="done")], letters=(), kept_since_ms=LATER_MS)
    assert breaches(result) == {Breach.LOST: 1}


def test_an_expired_tombstone_alone_is_unpaired_and_its_record_lost() -> None:
    assert breaches(judged([EXPIRED], letters=())) == {Breach.LOST: 1, Breach.UNPAIRED: 1}


def test_an_export_whose_tombstone_is_gone_is_neither_kept_nor_broken() -> None:
    result = judged([], kept_since_ms=LATER_MS)
    assert result.ok and not result.whole
    assert result.dead_lettered == 1
    assert result.unjudged[Breach.UNPAIRED] == 1


def test_a_record_whose_tombstone_may_be_gone_is_not_lost() -> None:
    result = judged([], letters=(), kept_since_ms=LATER_MS)
    assert result.ok and not result.whole
    assert (result.published, result.lost, result.gone) == (1, 0, 1)


def test_an_export_whose_tombstone_was_replaced_is_neither() -> None:
    result = judged([replace(EXPIRED, offset=30, outcome="done")])
    assert result.ok and not result.whole


@pytest.mark.parametrize("kept_since_ms", [None, 900])
def test_an_entry_too_young_for_compaction_is_missed(kept_since_ms: int | None) -> None:
    assert breaches(judged([], kept_since_ms=kept_since_ms)) == {Breach.UNPAIRED: 1}
    assert breaches(judged([], letters=(), kept_since_ms=kept_since_ms)) == {Breach.LOST: 1}


@pytest.mark.parametrize(
    ("log", "why"),
    [
        pytest.param([*YOUNG, EXPIRED], "nothing was cleaned as far as the tombstone", id="uncleaned"),
        pytest.param(
            [replace(REGISTERED, offset=9), EXPIRED], "the older one would be gone too", id="older one stands"
        ),
        pytest.param([replace(REGISTERED, wait_id="id-6"), EXPIRED], "another id stands there", id="occupied"),
        pytest.param([replace(EXPIRED, offset=9)], "nothing later stands", id="no later entry"),
        pytest.param([replace(EXPIRED, partition=1)], "each partition is cleaned alone", id="another partition"),
    ],
)
def test_compaction_explains_only_what_it_can_have_done(log: list[WaitEntry], why: str) -> None:
    assert breaches(judged(log))[Breach.UNPAIRED] == 1, why


def test_an_old_export_above_what_was_cleaned_needs_its_registration() -> None:
    letter = replace(LETTER, registration=(0, 17))
    assert breaches(judged(YOUNG, letters=[letter], kept_since_ms=LATER_MS)) == {Breach.UNPAIRED: 1}


def test_the_first_uncleaned_pair_of_any_id_bounds_what_was_cleaned() -> None:
    lower, higher = (replace(YOUNG[0], offset=11), replace(YOUNG[1], offset=12)), replace(YOUNG[0], wait_id="id-7")
    log = [*lower, replace(higher, offset=13), EXPIRED, replace(higher, offset=30)]
    assert breaches(judged(log)) == {Breach.UNPAIRED: 1}


def test_an_old_unhandled_record_with_its_entries_in_the_log_is_lost() -> None:
    log = [REGISTERED, replace(EXPIRED, outcome="done")]
    assert breaches(judged(log, letters=(), kept_since_ms=LATER_MS, knows_ids=False)) == {Breach.LOST: 1}


def test_a_second_export_of_an_id_needs_its_own_tombstone() -> None:
    again = replace(REGISTERED, offset=30, append_ms=6000)
    letters = [LETTER, replace(LETTER, registration=(0, 30), time_ms=9000)]
    assert breaches(judged([EXPIRED, again], letters=letters)) == {Breach.UNPAIRED: 1, Breach.TABLES_DIFFER: 1}
    second = replace(EXPIRED, offset=40, append_ms=9001)
    assert judged([EXPIRED, again, second], letters=letters).ok
    assert judged([second], letters=letters).ok


def test_a_later_entry_shows_a_false_export_without_the_wait_record() -> None:
    assert breaches(judged([replace(EXPIRED, offset=15, append_ms=1200, outcome="done"), EXPIRED])) == {
        Breach.FALSELY_EXPORTED: 1
    }


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
