"""The reconciliation finds every planted breach, and nothing in a history that kept every guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from waitreg.downstream.calls import ABORTED, Call
from waitreg.load.manifest import Published, fingerprint
from waitreg.reconcile.breaches import TOMBSTONE_MS, Breach
from waitreg.reconcile.reconciliation import Evidence, Reconciliation, reconcile
from waitreg.reconcile.wait_log import DeadLetterSeen, WaitEntry

TOPIC = "orders"
VALUE = b'{"order":1}'
CONTENT = fingerprint(b"k", VALUE, [("a", None), ("a", b"")])
TIMESTAMP_MS = 1_700_000_000_000


def published(offset: int) -> Published:
    return Published(TOPIC, 0, offset, TIMESTAMP_MS, CONTENT)


def wait(offset: int, wait_offset: int) -> WaitEntry:
    return WaitEntry(0, wait_offset, wait_offset * 10, f"id-{offset}", (TOPIC, 0, offset))


def tombstone(offset: int, wait_offset: int, outcome: str, **changes: int) -> WaitEntry:
    return replace(wait(offset, wait_offset), original=None, outcome=outcome, **changes)  # type: ignore[arg-type]


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
    tables=(),
)


def breaches(result: Reconciliation) -> dict[Breach, int]:
    return {breach: count for breach, count in result.breaches.items() if count}


KEPT_LETTER, LATE = KEPT.dead_letters[0], tombstone(1, 12, "done")


def test_a_history_that_kept_every_guarantee_adds_up() -> None:
    result = reconcile(KEPT)
    assert result.ok and result.finished and not result.problems
    assert (result.published, result.done, result.dead_lettered, result.lost) == (2, 1, 1, 0)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_the_order_in_which_the_log_was_read_does_not_matter(order: Sequence[int]) -> None:
    assert reconcile(replace(KEPT, wait_log=[KEPT.wait_log[index] for index in order])) == reconcile(KEPT)


def changed(**parts: Any) -> dict[str, Any]:
    return {"dead_letters": [replace(KEPT_LETTER, **parts)]}


@pytest.mark.parametrize(
    ("difference", "found"),
    [
        pytest.param({"published": [*KEPT.published, published(2)]}, {Breach.LOST: 1}, id="no outcome"),
        pytest.param({"calls": [call(1, status=ABORTED)]}, {Breach.LOST: 1}, id="done, and never called"),
        pytest.param({"calls": [call(0, status=503)]}, {Breach.LOST: 1}, id="done, and only a call failed"),
        pytest.param(
            {"dead_letters": [KEPT_LETTER] * 2, "wait_log": [*KEPT.wait_log, tombstone(1, 11, "expired")]},
            {Breach.DOUBLED: 1},
            id="two dead letters of one registration",
        ),
        pytest.param(
            {"dead_letters": [KEPT_LETTER] * 2},
            {Breach.DOUBLED: 1, Breach.UNPAIRED: 1},
            id="two letters, one tombstone",
        ),
        pytest.param(
            {"wait_log": KEPT.wait_log[:-1], "tables": ["id-1"]}, {Breach.UNPAIRED: 1}, id="dead letter, no tombstone"
        ),
        pytest.param({"dead_letters": []}, {Breach.LOST: 1, Breach.UNPAIRED: 1}, id="tombstone, no dead letter"),
        pytest.param(changed(registration=(0, 7)), {Breach.UNPAIRED: 1}, id="dead letter of another registration"),
        *(
            pytest.param({"wait_log": [*KEPT.wait_log, later], "tables": None}, {Breach.FALSELY_EXPORTED: 1}, id=name)
            for name, later in {
                "exported past a tombstone": tombstone(1, 5, "done"),
                "exported past a newer registration": wait(1, 5),
                "exported past a tombstone of another partition": tombstone(1, 0, "done", partition=1, append_ms=50),
            }.items()
        ),
        pytest.param(
            {"dead_letters": [KEPT_LETTER, failed(99)]}, {Breach.CHANGED: 1}, id="dead letter of no published record"
        ),
        pytest.param({"calls": [call(0, body=b"x")]}, {Breach.CHANGED: 1}, id="another body at the downstream"),
        pytest.param({"tables": ["id-0"]}, {Breach.TABLES_DIFFER: 1}, id="a row too many"),
        pytest.param({"tables": ["id-0", "id-1"]}, {Breach.TABLES_DIFFER: 2}, id="two rows too many"),
        pytest.param(
            {"wait_log": [wait(0, 0), tombstone(0, 1, "done"), wait(1, 2)], "dead_letters": []},
            {Breach.TABLES_DIFFER: 1},
            id="a missing row",
        ),
    ],
)
def test_a_planted_breach_is_found(difference: dict[str, Any], found: dict[Breach, int]) -> None:
    result = reconcile(replace(KEPT, **difference))
    assert breaches(result) == found
    assert result.lost == found.get(Breach.LOST, 0)


def test_a_problem_names_its_record() -> None:
    (problem,) = reconcile(replace(KEPT, published=[*KEPT.published, published(2)])).problems
    assert "orders/0@2" in problem.about


@pytest.mark.parametrize(
    ("difference", "named"),
    [
        ({"fingerprint": replace(CONTENT, key=None)}, "key"),
        ({"fingerprint": replace(CONTENT, value=None)}, "value"),
        ({"fingerprint": fingerprint(b"k", VALUE, [("a", b""), ("a", None)])}, "headers"),
        ({"timestamp_ms": TIMESTAMP_MS + 1}, "timestamp"),
    ],
)
def test_a_dead_letter_with_another_content_is_changed(difference: dict[str, Any], named: str) -> None:
    result = reconcile(replace(KEPT, **changed(**difference)))
    assert breaches(result) == {Breach.CHANGED: 1}
    assert named in result.problems[0].about


NULL = Published(TOPIC, 0, 0, TIMESTAMP_MS, fingerprint(None, None, None))
AGAIN = [tombstone(0, 2, "dead_lettered"), tombstone(0, 3, "dead_lettered")]
EXPIRED_TWICE = [wait(1, 1), tombstone(1, 10, "expired"), wait(1, 11), tombstone(1, 20, "expired")]


@pytest.mark.parametrize(
    ("evidence", "counts"),
    [
        pytest.param(
            replace(KEPT, wait_log=KEPT.wait_log[:3], dead_letters=[], tables=["id-1"]),
            {"done": 1, "waiting": 1, "finished": False},
            id="a registered record waits",
        ),
        pytest.param(
            Evidence([published(0)], [], [], [wait(0, 0), tombstone(0, 1, "discarded")], ()),
            {"done": 0, "discarded": 1},
            id="discarded",
        ),
        pytest.param(
            Evidence(
                [published(0)], [call(0, status=400)], [failed(0)], [wait(0, 0), tombstone(0, 1, "dead_lettered")], ()
            ),
            {"dead_lettered": 1},
            id="the processor's dead letter",
        ),
        pytest.param(
            Evidence([published(0)], [], [failed(0)] * 2, [wait(0, 0), wait(0, 1), *AGAIN], ()),
            {"dead_lettered": 1},
            id="the processor's dead letter twice: at least once",
        ),
        pytest.param(
            Evidence([published(1)], [], [KEPT_LETTER, expired(1, (0, 11), 195)], EXPIRED_TWICE, ()),
            {"dead_lettered": 1},
            id="two registrations of one ID expire",
        ),
        *(
            pytest.param(
                replace(KEPT, calls=[*KEPT.calls, call(1)], wait_log=[*KEPT.wait_log, outcome]),
                {"done_and_dead_lettered": 1},
                id=f"an outcome {when} the export",
            )
            for when, outcome in {"during": tombstone(1, 9, "done", append_ms=96), "after": LATE}.items()
        ),
        pytest.param(Evidence([NULL], [call(0, body=None)], [], [], None), {"done": 1}, id="a null value as no body"),
        pytest.param(replace(KEPT, calls=[call(0), call(0)]), {"handled_again": 1}, id="handled again after a crash"),
        pytest.param(
            replace(
                KEPT,
                wait_log=[*KEPT.wait_log, replace(wait(5, 50), wait_id="foreign", original=("others", 0, 5))],
                dead_letters=[KEPT_LETTER, replace(expired(5, (0, 50), 0), original=("others", 0, 5))],
                calls=[*KEPT.calls, replace(call(0), topic="others")],
                tables=["foreign"],
            ),
            {"published": 2},
            id="other topics",
        ),
    ],
)
def test_a_history_that_kept_every_guarantee_is_ok(evidence: Evidence, counts: dict[str, Any]) -> None:
    result = reconcile(evidence)
    assert result.ok, result.problems
    assert {name: getattr(result, name) for name in counts} == counts


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
        pytest.param(50, [], 1, id="no kill"),
        pytest.param(50, None, 0, id="kills unknown"),
    ],
)
def test_a_finished_record_that_expired_is_explained_only_by_a_kill(
    answered_ms: int, kills_ms: list[int] | None, forgotten: int
) -> None:
    calls = [*KEPT.calls, replace(FINISHED, finished_ms=answered_ms)]
    result = reconcile(replace(KEPT, calls=calls, kills_ms=kills_ms))
    assert result.done_and_dead_lettered == 1
    assert result.breaches[Breach.FORGOTTEN] == forgotten


def test_a_record_registered_again_after_its_export_is_explained() -> None:
    log = [*KEPT.wait_log, wait(1, 20), tombstone(1, 30, "done")]
    calls = [*KEPT.calls, replace(FINISHED, finished_ms=250)]
    assert reconcile(replace(KEPT, calls=calls, wait_log=log, kills_ms=[KILL_MS])).ok
