"""The reconciliation finds every broken promise that is planted, and nothing in a history that kept them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from wait_registry.demo.breaches import TOMBSTONE_MS, Breach
from wait_registry.demo.calls import ABORTED, Call
from wait_registry.demo.manifest import Published, fingerprint
from wait_registry.demo.reconciliation import Evidence, Reconciliation, reconcile
from wait_registry.demo.wait_log import DeadLetterSeen, WaitEntry

TOPIC = "orders"
VALUE = b'{"order":1}'
CONTENT = fingerprint(b"k", VALUE, [("a", None), ("a", b"")])
TIMESTAMP_MS = 1_700_000_000_000


def published(offset: int) -> Published:
    return Published(TOPIC, 0, offset, TIMESTAMP_MS, CONTENT)


def wait(offset: int, wait_offset: int, *, partition: int = 0, append_ms: int | None = None) -> WaitEntry:
    at = wait_offset * 10 if append_ms is None else append_ms
    return WaitEntry(partition, wait_offset, at, f"id-{offset}", (TOPIC, 0, offset))


def tombstone(
    offset: int, wait_offset: int, outcome: str, *, partition: int = 0, append_ms: int | None = None
) -> WaitEntry:
    at = wait_offset * 10 if append_ms is None else append_ms
    return WaitEntry(partition, wait_offset, at, f"id-{offset}", None, outcome)


def call(offset: int, *, status: int = 200, body: bytes | None = VALUE) -> Call:
    digest = fingerprint(None, body or b"", None).value or ""
    return Call(1, 0, 200, 0.0, 0.2, f"id-{offset}", TOPIC, 0, offset, 1, status, digest)


def expired(offset: int, registration: tuple[int, int], time_ms: int) -> DeadLetterSeen:
    return DeadLetterSeen((TOPIC, 0, offset), TIMESTAMP_MS, "expired", f"id-{offset}", registration, time_ms, CONTENT)


def failed(offset: int, registration: tuple[int, int] = (0, 0)) -> DeadLetterSeen:
    return replace(expired(offset, registration, 0), reason="failed")


# Record 0 was done; record 1 was in flight when its processor died.
KEPT = Evidence(
    published=[published(0), published(1)],
    calls=[call(0), call(1, status=ABORTED)],
    dead_letters=[expired(1, (0, 1), 95)],
    wait_log=[wait(0, 0), wait(1, 1), tombstone(0, 2, "done"), tombstone(1, 10, "expired")],
    view=(),
)


def breaches(result: Reconciliation) -> dict[Breach, int]:
    return {breach: count for breach, count in result.breaches.items() if count}


def test_a_history_that_kept_every_promise_has_no_breach_and_adds_up() -> None:
    result = reconcile(KEPT)
    assert result.ok and result.finished and not result.problems
    assert (result.published, result.done, result.dead_lettered, result.lost) == (2, 1, 1, 0)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_the_order_in_which_the_log_was_read_does_not_matter(order: Sequence[int]) -> None:
    assert reconcile(replace(KEPT, wait_log=[KEPT.wait_log[index] for index in order])) == reconcile(KEPT)


def test_a_record_without_any_outcome_is_lost() -> None:
    result = reconcile(replace(KEPT, published=[*KEPT.published, published(2)]))
    assert breaches(result) == {Breach.LOST: 1}
    assert result.lost == 1
    assert "orders/0@2" in result.problems[0].about


def test_a_record_whose_tombstone_says_done_but_that_nobody_handled_is_lost() -> None:
    result = reconcile(replace(KEPT, calls=[call(1, status=ABORTED)]))
    assert breaches(result) == {Breach.LOST: 1}


def test_a_record_whose_only_calls_failed_or_were_aborted_is_not_done() -> None:
    result = reconcile(replace(KEPT, calls=[call(0, status=503), call(0, status=ABORTED)]))
    assert breaches(result) == {Breach.LOST: 1}


def test_a_record_standing_in_the_wait_topic_is_waiting_and_not_lost() -> None:
    log = [wait(0, 0), wait(1, 1), tombstone(0, 2, "done")]
    result = reconcile(replace(KEPT, wait_log=log, dead_letters=[], view=["id-1"]))
    assert result.ok and not result.finished
    assert (result.done, result.waiting) == (1, 1)


def test_a_discarded_record_is_neither_done_nor_lost() -> None:
    log = [wait(0, 0), tombstone(0, 1, "discarded")]
    result = reconcile(replace(KEPT, published=[published(0)], calls=[], dead_letters=[], wait_log=log))
    assert result.ok
    assert (result.done, result.discarded) == (0, 1)


def test_a_failed_dead_letter_of_the_processor_ends_its_record() -> None:
    log = [wait(0, 0), tombstone(0, 1, "dead_lettered")]
    result = reconcile(Evidence([published(0)], [call(0, status=400)], [failed(0)], log, ()))
    assert result.ok
    assert result.dead_lettered == 1


def test_a_failed_dead_letter_that_came_twice_is_at_least_once_and_no_breach() -> None:
    log = [wait(0, 0), wait(0, 1), tombstone(0, 2, "dead_lettered"), tombstone(0, 3, "dead_lettered")]
    result = reconcile(Evidence([published(0)], [], [failed(0), failed(0)], log, ()))
    assert result.ok


def test_two_expired_dead_letters_of_one_registration_are_doubled() -> None:
    log = [*KEPT.wait_log, tombstone(1, 11, "expired")]
    result = reconcile(replace(KEPT, dead_letters=[*KEPT.dead_letters, expired(1, (0, 1), 95)], wait_log=log))
    assert breaches(result) == {Breach.DOUBLED: 1}


def test_two_expired_dead_letters_with_one_tombstone_are_doubled_and_unpaired() -> None:
    result = reconcile(replace(KEPT, dead_letters=[*KEPT.dead_letters, expired(1, (0, 1), 95)]))
    assert breaches(result) == {Breach.DOUBLED: 1, Breach.UNPAIRED: 1}


def test_two_registrations_of_one_id_may_both_expire() -> None:
    log = [wait(1, 1), tombstone(1, 10, "expired"), wait(1, 11), tombstone(1, 20, "expired")]
    letters = [expired(1, (0, 1), 95), expired(1, (0, 11), 195)]
    result = reconcile(Evidence([published(1)], [], letters, log, ()))
    assert result.ok
    assert result.dead_lettered == 1


def test_an_expired_dead_letter_without_its_tombstone_is_unpaired() -> None:
    result = reconcile(replace(KEPT, wait_log=KEPT.wait_log[:-1], view=["id-1"]))
    assert breaches(result) == {Breach.UNPAIRED: 1}


def test_an_expired_tombstone_without_its_dead_letter_is_unpaired_and_its_record_lost() -> None:
    result = reconcile(replace(KEPT, dead_letters=[]))
    assert breaches(result) == {Breach.LOST: 1, Breach.UNPAIRED: 1}


def test_a_dead_letter_of_a_registration_that_is_not_in_the_log_is_unpaired() -> None:
    result = reconcile(replace(KEPT, dead_letters=[expired(1, (0, 7), 95)]))
    assert breaches(result) == {Breach.UNPAIRED: 1}


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(tombstone(1, 5, "done"), id="a tombstone"),
        pytest.param(wait(1, 5), id="a newer registration"),
        pytest.param(tombstone(1, 0, "done", partition=1, append_ms=50), id="a tombstone in another partition"),
    ],
)
def test_an_export_past_a_later_entry_of_the_id_is_false(later: WaitEntry) -> None:
    result = reconcile(replace(KEPT, wait_log=[*KEPT.wait_log, later], view=None))
    assert breaches(result) == {Breach.FALSELY_EXPORTED: 1}


def test_an_entry_that_came_while_the_export_was_on_its_way_is_no_false_export() -> None:
    late = tombstone(1, 9, "done", append_ms=96)
    result = reconcile(replace(KEPT, calls=[*KEPT.calls, call(1)], wait_log=[*KEPT.wait_log, late]))
    assert result.ok
    assert result.done_and_dead_lettered == 1


def test_an_outcome_after_the_export_is_no_false_export() -> None:
    late = tombstone(1, 12, "done")
    result = reconcile(replace(KEPT, calls=[*KEPT.calls, call(1)], wait_log=[*KEPT.wait_log, late]))
    assert result.ok


@pytest.mark.parametrize(
    ("difference", "named"),
    [
        ({"fingerprint": replace(CONTENT, key=None)}, "key"),
        ({"fingerprint": replace(CONTENT, value=None)}, "value"),
        ({"fingerprint": fingerprint(b"k", VALUE, [("a", b""), ("a", None)])}, "headers"),
        ({"timestamp_ms": TIMESTAMP_MS + 1}, "timestamp"),
    ],
)
def test_a_dead_letter_with_another_content_is_changed(difference: dict[str, object], named: str) -> None:
    letter = replace(KEPT.dead_letters[0], **difference)  # type: ignore[arg-type]
    result = reconcile(replace(KEPT, dead_letters=[letter]))
    assert breaches(result) == {Breach.CHANGED: 1}
    assert named in result.problems[0].about


def test_a_dead_letter_of_a_record_never_published_is_changed() -> None:
    result = reconcile(replace(KEPT, dead_letters=[*KEPT.dead_letters, failed(99)]))
    assert breaches(result) == {Breach.CHANGED: 1}


def test_a_body_that_reached_the_downstream_otherwise_than_published_is_changed() -> None:
    result = reconcile(replace(KEPT, calls=[call(0, body=b"x")]))
    assert breaches(result) == {Breach.CHANGED: 1}


def test_a_null_value_arrives_at_the_downstream_as_an_empty_body() -> None:
    record = Published(TOPIC, 0, 0, TIMESTAMP_MS, fingerprint(None, None, None))
    result = reconcile(Evidence([record], [call(0, body=None)], [], [], None))
    assert result.ok and result.done == 1


@pytest.mark.parametrize("view", [["id-0"], ["id-0", "id-1"]])
def test_a_view_that_disagrees_with_the_log_is_a_breach(view: list[str]) -> None:
    assert breaches(reconcile(replace(KEPT, view=view))) == {Breach.VIEW_DIFFERS: len(view)}


def test_a_row_missing_from_the_view_is_a_breach() -> None:
    log = [wait(0, 0), tombstone(0, 1, "done"), wait(1, 2)]
    result = reconcile(replace(KEPT, wait_log=log, dead_letters=[], view=()))
    assert breaches(result) == {Breach.VIEW_DIFFERS: 1}


def test_what_belongs_to_other_topics_is_left_out() -> None:
    foreign_wait = replace(wait(5, 50), wait_id="foreign", original=("others", 0, 5))
    foreign_letter = replace(expired(5, (0, 50), 0), original=("others", 0, 5))
    result = reconcile(
        replace(
            KEPT,
            wait_log=[*KEPT.wait_log, foreign_wait],
            dead_letters=[*KEPT.dead_letters, foreign_letter],
            calls=[*KEPT.calls, replace(call(0), topic="others")],
            view=["foreign"],
        )
    )
    assert result.ok


def test_a_record_handled_again_after_a_crash_is_counted_and_is_no_breach() -> None:
    result = reconcile(replace(KEPT, calls=[call(0), call(0)]))
    assert result.ok and result.handled_again == 1


def test_the_listed_problems_are_bounded_and_the_counts_are_not() -> None:
    result = reconcile(Evidence([published(offset) for offset in range(500)], [], [], [], None))
    assert result.breaches[Breach.LOST] == 500
    assert len(result.problems) == 20


KILL_MS = 60
FINISHED = call(1)


@pytest.mark.parametrize(
    ("answered_ms", "kills_ms", "forgotten"),
    [
        pytest.param(50, [KILL_MS], 0, id="killed before the tombstone was written"),
        pytest.param(5, [KILL_MS], 0, id="answered before this registration, for an earlier one"),
        pytest.param(70, [KILL_MS], 1, id="answered after the kill"),
        pytest.param(50, [50 + TOMBSTONE_MS + 1], 1, id="killed long after"),
        pytest.param(50, [], 1, id="nobody was killed"),
        pytest.param(50, None, 0, id="nobody knows the kills"),
    ],
)
def test_a_finished_record_that_expired_is_explained_only_by_a_kill(
    answered_ms: int, kills_ms: list[int] | None, forgotten: int
) -> None:
    calls = [*KEPT.calls, replace(FINISHED, finished_ms=answered_ms)]
    result = reconcile(replace(KEPT, calls=calls, kills_ms=kills_ms))
    assert result.done_and_dead_lettered == 1
    assert result.breaches[Breach.FORGOTTEN] == forgotten


def test_a_record_registered_again_after_its_export_and_finished_then_is_explained() -> None:
    log = [*KEPT.wait_log, wait(1, 20), tombstone(1, 30, "done")]
    calls = [*KEPT.calls, replace(FINISHED, finished_ms=250)]
    assert reconcile(replace(KEPT, calls=calls, wait_log=log, kills_ms=[KILL_MS])).ok
