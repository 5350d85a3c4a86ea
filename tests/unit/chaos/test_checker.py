"""Each planted violation is found by its own rules alone; void runs, stories, and how records are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.chaos.checker.bounds import bound
from tests.chaos.checker.dead_lettering import dead_lettered_again
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.registering import committed_past
from tests.chaos.checker.story import story
from tests.chaos.checker.verdict import RULES, Verdict, check
from tests.chaos.history.decoding import UNREADABLE_HEADERS, as_input, republished, wait_entry
from tests.chaos.history.entries import Registration, Republished, Unreadable
from tests.chaos.history.history import FaultDone, History
from tests.chaos.history.reading import with_manifest
from tests.support.kafka_io import UNREADABLE, Headers, ReadRecord
from tests.unit.chaos.play import Play, planted
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Published, fingerprint
from wait_registry.errors import DataError

HISTORIES = list(planted())
BREACHES = [one for one in HISTORIES if one[0]]
RAW = ReadRecord("orders", 0, 3, 17, "create", b"key", b"value", (("name", b"12345"), ("null", None)))


def reasons(verdict: Verdict) -> Sequence[str]:
    return [f"{one.rule}: {one.why}" for one in verdict.violations]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: ": ".join(history)[:110])
def test_planted_history_is_found_by_its_rules_alone(history: tuple[str, str, str]) -> None:
    rules, _, steps = history
    verdict = check(Play().plant(steps))
    assert set(verdict.counts) == set(rules.split()), reasons(verdict)
    assert verdict.passed is not bool(rules)
    stories = verdict.stories(3)
    assert stories[0].startswith(reasons(verdict)[0]) if rules else stories == []


def test_every_rule_has_a_history_that_it_alone_finds() -> None:
    assert {rules for rules, _, _ in BREACHES} >= set(RULES)


@pytest.mark.parametrize("snapshots_at_polls", [False, True])
def test_eventful_clean_run_passes(snapshots_at_polls: bool) -> None:
    verdict = check(Play(snapshots_at_polls=snapshots_at_polls).history())
    assert reasons(verdict) == []
    assert (verdict.void, verdict.passed) == ("", True)
    seen = verdict.history.snapshots or ()
    assert not snapshots_at_polls or min(len(seen), sum(len(tables.wait) for tables in seen)) > 50


@pytest.mark.parametrize(
    ("cancels", "took_ms", "rules"), [(True, 300, set()), (True, 200, {"unfounded"}), (False, 300, {"unfounded"})]
)
def test_a_call_that_blocked_a_slot_may_be_the_last_one(cancels: bool, took_ms: int, rules: set[str]) -> None:
    play = Play()
    processor = play.settings.processor.model_copy(update={"cancel_blocked": cancels, "blocked_after_s": 0.5})
    play.settings = play.settings.model_copy(update={"processor": processor})
    play.do(f"take; call 499 {took_ms}; fail")
    assert set(check(play.history()).counts) == rules


def test_the_reading_at_the_end_is_later_than_the_last_poll_that_succeeded() -> None:
    play = Play()
    play.do("put modes ('deferred',)")
    polls = len(play.polls)
    play.do("wait 30000; take; done")
    history = replace(play.history(), polls=play.polls[:polls])
    deferred = replace(history, wait_log=[entry for entry in history.wait_log if entry.append_ms < play.now_ms - 1_000])
    assert list(committed_past(Ledger(deferred))) == []


def test_a_record_in_a_retry_topic_is_not_in_flight_any_more_though_its_tombstone_is_late() -> None:
    play = Play()
    play.do("wait 30000; take_at_once 1; call 503; call 503; retry; change wait_log -1 append_ms=+500")
    retried, play.taken = play.place, []
    play.do("take_at_once 12; each finish")
    play.place = retried
    play.do("wait 10000; done")
    assert reasons(check(play.history())) == []


@pytest.mark.parametrize(("published", "found"), [("", 1), ("change inputs -1 timestamp_ms=1795000000000;", 0)])
def test_without_registrations_a_record_of_the_backlog_may_come_twice_while_the_group_forms(
    published: str, found: int
) -> None:
    history = Play().plant(f"wait 40000; publish; {published} unregistrable 2")
    assert len(list(dead_lettered_again(Ledger(replace(history, wait_log=()))))) == found


@pytest.mark.parametrize(("before_ms", "found"), [(0, ["calls in flight by processor-1/1"]), (1, [])])
def test_a_call_before_its_registration_may_be_of_another_owner(before_ms: int, found: list[str]) -> None:
    history = replace(Play().plant("wait 30000; take_at_once 7"), modes=("deferred", "off"))
    registered = [entry for entry in history.wait_log[-7:] if isinstance(entry, Registration)]
    calls = [
        Call(1, entry.append_ms - before_ms, entry.append_ms + 1000, 0, 0, entry.wait_id, *entry.original, 1, 200, "")
        for entry in registered
    ]
    assert [about for about, _ in bound(Ledger(replace(history, calls=calls)))] == found


def unseen(history: History) -> History:
    """Remove the polls of 25 seconds before the end."""
    last_ms = history.polls[-1].ended_ms
    return replace(history, polls=[poll for poll in history.polls if not 5_000 < last_ms - poll.began_ms < 30_000])


def away(history: History) -> History:
    """Freeze the broker during these."""
    last_ms = history.polls[-1].ended_ms
    fault = FaultDone("freeze", "broker", last_ms - 30_000, last_ms - 10_000, "state T")
    return replace(unseen(history), faults=[*history.faults, fault])


@pytest.mark.parametrize(
    ("changed", "void"),
    [
        (lambda history: history, ""),
        (lambda history: replace(history, faults=[FaultDone("freeze", "sink-1", 1, 2, "")]), "no proof .* of sink-1"),
        (lambda history: replace(history, polls=[]), "no poll saw"),
        (lambda history: replace(history, polls=history.polls[:1]), "no poll saw"),
        (lambda history: replace(history, inputs=[], calls=[]), "no record was published"),
        (unseen, "no poll saw"),
        (away, ""),
        (lambda history: replace(history, snapshots=(history.snapshots or ())[:2]), "the tables were seen 2 times"),
        (lambda history: replace(history, snapshots=None), ""),
    ],
)
def test_run_without_its_faults_or_evidence_is_void(changed: Callable[[History], History], void: str) -> None:
    history = Play().plant("wait 40000; publish; done; snapshot; snapshot; snapshot; end")
    verdict = check(changed(history))
    assert re.match(void, verdict.void) if void else verdict.void == ""
    assert verdict.passed is not bool(void)


def test_story_is_in_the_order_of_time() -> None:
    play = Play()
    ledger = Ledger(play.plant("take; call 400; fault kill processor-1; letter; export False; export"))
    text = story(ledger, play.place)
    milestones = [
        "published",
        "registration at wait",
        "status 400",
        "fault kill of",
        "letter failed",
        "ABORTED",
        "expired",
    ]
    assert re.search(".*".join(milestones), text, re.DOTALL), text
    assert story(ledger, play.entry.wait_id).splitlines()[1:] == text.splitlines()[1:]


def test_inputs_are_those_of_the_topic_and_none_is_missing() -> None:
    listed = Published("orders", 0, 3, 16, fingerprint(b"key", b"value", RAW.headers))
    unlisted = replace(RAW, partition=1, key=None, value=b"")
    assert with_manifest([listed], [RAW, unlisted]) == [replace(as_input(RAW), timestamp_ms=16), as_input(unlisted)]
    (nameless,) = with_manifest([listed], [replace(RAW, headers=UNREADABLE)])
    assert nameless.content == replace(listed.fingerprint, headers=UNREADABLE_HEADERS)
    assert as_input(RAW).bytes == 3 + 5 + 4 + 5 + 4
    with pytest.raises(DataError, match="1 published records are missing"):
        with_manifest([listed], [unlisted])


@pytest.mark.parametrize(
    "headers", [UNREADABLE, (), (("WAIT_OUTCOME", b"gone"),), (("WAIT_OUTCOME", b"done"), ("WAIT_OUTCOME", b"done"))]
)
def test_records_not_exactly_in_the_format_are_unreadable(headers: Headers) -> None:
    assert isinstance(wait_entry(replace(RAW, value=None, headers=headers), True), Unreadable)
    assert isinstance(wait_entry(replace(RAW, headers=headers), True), Unreadable)
    assert not isinstance(republished(replace(RAW, headers=headers), True), Republished)
