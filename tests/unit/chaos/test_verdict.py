"""What else is said of a run: whether it is void, how long things took, the story of a record, what was read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.story import story
from tests.chaos.checker.verdict import check
from tests.chaos.history import topics
from tests.chaos.history.decoding import UNREADABLE_HEADERS, RawRecord, republished, wait_entry
from tests.chaos.history.history import FaultDone, History
from tests.chaos.history.reading import with_input
from tests.chaos.history.topics import OpenTransactionError, wait_settled
from tests.chaos.settling import Patience
from tests.unit.chaos.play import Play
from wait_registry.demo.manifest import Published, fingerprint

RAW = RawRecord("orders", 0, 3, 17, b"key", b"value", (("name", b"12345"), ("null", None)))


def unseen(history: History) -> History:
    """Have nobody look for 25 seconds before the end."""
    last_ms = history.looks[-1].ended_ms
    return replace(history, looks=[look for look in history.looks if not 5_000 < last_ms - look.began_ms < 30_000])


def away(history: History) -> History:
    """Have the broker be away for these."""
    last_ms = history.looks[-1].ended_ms
    fault = FaultDone("freeze", "broker", last_ms - 30_000, last_ms - 10_000, "state T")
    return replace(unseen(history), faults=[*history.faults, fault])


@pytest.mark.parametrize(
    ("changed", "void"),
    [
        (lambda history: history, ""),
        (lambda history: replace(history, faults=[FaultDone("freeze", "sink-1", 1, 2, "")]), "no proof .* of sink-1"),
        (lambda history: replace(history, looks=[]), "nobody looked"),
        (lambda history: replace(history, looks=history.looks[:1]), "nobody looked"),
        (lambda history: replace(history, published=[], calls=[]), "no record was published"),
        (unseen, "nobody looked"),
        (away, ""),
        (lambda history: replace(history, views=(history.views or ())[:2]), "the tables were seen 2 times"),
        (lambda history: replace(history, views=None), ""),
    ],
)
def test_a_run_without_its_faults_or_evidence_is_void(changed: Callable[[History], History], void: str) -> None:
    history = Play().plant("wait 40000; publish; done; view; view; view; end")
    verdict = check(changed(history))
    assert re.match(void, verdict.void) if void else verdict.void == ""
    assert verdict.passed is not bool(void)


@pytest.mark.parametrize(
    ("figure", "steps", "least_ms"),
    [
        ("slowest_registration_ms", "wait 30000", 0),
        ("slowest_registration_ms", "wait 30000; publish; wait 20000; fault kill sweeper-1; done", 20_000),
        *(
            ("slowest_registration_ms", f"wait 30000; fault kill {target}; publish; wait 20000; done", 0)
            for target in ("processor-3", "group", "broker", "everything", "downstream", "input")
        ),
        ("slowest_export_ms", "take; fault kill processor-1; expire; wait 20000; export", 20_000),
        (
            "slowest_export_ms",
            "take; fault kill processor-1; expire; wait 20000; export; fault kill sink-1; take; "
            "fault kill processor-1; expire; wait 60000; export",
            20_000,
        ),
    ],
)
def test_delays_are_measured_where_no_fault_held_anything_up(figure: str, steps: str, least_ms: int) -> None:
    verdict = check(Play().plant(steps))
    assert verdict.violations == []
    assert least_ms <= verdict.figures[figure] < least_ms + 1_000


def test_a_story_tells_everything_in_the_order_of_time() -> None:
    play = Play()
    steps = "take; call 400; wait 10; fault kill processor-1; letter; export False; export; stone dead_lettered"
    history = play.plant(steps)
    told = story(Ledger(history), play.place)
    milestones = [
        "published at orders/1@",
        "registration at wait",
        "committed",
        "ends with status 400",
        "fault kill of processor-1 begins: pid 7 gone",
        "fault kill of processor-1 is over",
        "dead letter failed at dlq",
        "ABORTED or not decided",
        "dead letter expired at dlq",
        "tombstone expired at wait",
        "tombstone dead_lettered at wait",
        "at the end    row in dead_letter",
    ]
    assert re.search(".*".join(map(re.escape, milestones)), told, re.DOTALL), told
    assert story(Ledger(history), play.entry.wait_id).splitlines()[1:] == told.splitlines()[1:]


def test_the_list_is_completed_by_the_input_topics() -> None:
    listed = Published("orders", 0, 3, 17, fingerprint(b"key", b"value", RAW.headers))
    unlisted = replace(RAW, partition=1, key=None, value=b"")
    assert with_input([listed], [RAW, unlisted]) == [listed, Published("orders", 1, 3, 17, unlisted.content)]
    (completed,) = with_input([listed], [replace(RAW, headers=None)])
    assert completed.fingerprint == replace(listed.fingerprint, headers=UNREADABLE_HEADERS)
    assert RAW.input_bytes == 3 + 5 + 4 + 5 + 4


@pytest.mark.parametrize(
    "headers", [None, (), (("WAIT_OUTCOME", b"gone"),), (("WAIT_OUTCOME", b"done"), ("WAIT_OUTCOME", b"done"))]
)
def test_what_is_not_exactly_the_format_is_unreadable(headers: tuple[tuple[str, bytes | None], ...] | None) -> None:
    assert wait_entry(replace(RAW, value=None, headers=headers), True).unreadable
    assert wait_entry(replace(RAW, headers=headers), True).unreadable
    assert republished(replace(RAW, headers=headers), True).lineage is None


def test_a_transaction_that_stays_open_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def close(self) -> None:
            return

    stable, whole = Client(), Client()
    monkeypatch.setattr(topics, "reader", lambda _, isolation: stable if isolation == "read_committed" else whole)
    monkeypatch.setattr(topics, "partitions_of", lambda client, topic: [0])
    monkeypatch.setattr(topics, "end_of", lambda client, place: 7 if client is whole else 6)
    with pytest.raises(OpenTransactionError, match="open"):
        wait_settled("nowhere", ["wait"], deadline_s=0)


@pytest.mark.parametrize(
    ("most_s", "seen", "given_up_s"),
    [
        (100, [f"{90 - second} behind" for second in range(90)], None),
        (100, ["1 record"] * 50, 10),
        (100, ["a"] * 7 + ["b"] * 50, 17),
        (60, ["a", "b"] * 50, 60),
    ],
)
def test_what_changes_is_waited_for_and_what_hangs_or_goes_round_is_not(
    most_s: float, seen: list[str], given_up_s: int | None
) -> None:
    patience = Patience(10, most_s)
    over = [second for second, words in enumerate(seen) if patience.over(1000.0 + second, words)]
    assert next(iter(over), None) == given_up_s
