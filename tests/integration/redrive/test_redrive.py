"""A redrive sends each delivery once, byte for byte, marks it in that transaction, and does what its dry run said."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

import pytest

from tests.integration.redrive.conftest import Type
from tests.integration.redrive.scenario import HEADERS, Scenario
from tests.integration.sink.wait_topic import new_id
from tests.support.kafka_io import Outgoing
from tests.support.settings import changed
from wait_registry.dead_letters.outcome import Outcome
from wait_registry.dead_letters.outcome_reader import OutcomeReader
from wait_registry.errors import PermanentError, TransientError
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.kafka.targets import Targets
from wait_registry.records.dead_letter import Reason
from wait_registry.records.lineage import split_lineage
from wait_registry.records.operation import Advanced, Kind, Mark, Requested, State, encode_event
from wait_registry.records.wait_id import wait_id
from waitreg.redrive.executor import Executor
from waitreg.redrive.job_decision import ALLOWABLE, DONE, Category
from waitreg.redrive.operator_events import change
from waitreg.redrive.progress import Progress
from waitreg.redrive.request import Asker


@pytest.mark.guarantee("R1.5")
def test_each_dead_letter_is_sent_once_with_a_mark(at: Scenario) -> None:
    written = at.show_dead_letters(7)
    found = at.request()
    assert found.job.expected == {"redriven": 7}
    assert found.targets == {at.target: 7}
    assert at.sent() == []
    ended = at.execute(found.job)
    assert (ended.state, dict(ended.counts)) == (State.FINISHED, {"redriven": 7})
    sent = {record.value or b"": record for record in at.sent()}
    assert sorted(sent) == sorted(record.value or b"" for record in written)
    for record in sent.values():
        headers, lineage, _ = split_lineage(record.headers)
        assert headers == HEADERS
        assert lineage is not None and (lineage.delivery, lineage.group) == (2, at.group)
    marks = {mark.record: mark for mark in at.events() if isinstance(mark, Mark)}
    assert len(marks) == 7
    for mark in marks.values():
        assert mark.record is not None and mark.target is not None
        record = sent[b"value %d" % mark.record.offset]
        assert record.place == tuple(mark.target)
        assert mark.next_wait_id == wait_id(at.cluster, record.place, at.group, record.timestamp_ms)
    counted = at.read_operations()
    assert counted is not None and counted.marked == 0, "redriven isn't finished late"
    assert at.rows("select distinct state, state_by, job from dead_letter") == [("redriven", "anna", "job-1")]
    assert at.rows("select state, counts from operation") == [("finished", {"redriven": 7})]


@pytest.mark.guarantee("P1.27")
def test_a_redriven_later_delivery_keeps_the_key_of_the_first(at: Scenario) -> None:
    first, later = at.lineage(0).wait_id, at.lineage(1).wait_id
    at.show_dead_letters(1, wait_id=later, idempotency_key=first, delivery=2)
    at.execute(at.request().job)
    (sent,) = at.sent()
    lineage = split_lineage(sent.headers)[1]
    assert lineage is not None and (lineage.wait_id, lineage.idempotency_key, lineage.delivery) == (later, first, 3)


@pytest.mark.guarantee("R1.1")
def test_a_second_redrive_finds_them_in_the_topic_before_the_tables_do(at: Scenario) -> None:
    at.show_dead_letters(3)
    first, second = at.request(job="job-1").job, at.request(job="job-2").job
    at.execute(first)
    ended = at.execute(second)
    assert dict(ended.counts) == {"already_redriven": 3}
    assert len(at.sent()) == 3


@pytest.mark.guarantee("P1.44")
def test_a_mark_that_is_refused_says_nothing_of_its_dead_letter(at: Scenario, caplog: pytest.LogCaptureFixture) -> None:
    take = partial(at.topics.configure, at.settings.operations.topic, "max.message.bytes")
    at.show_dead_letters(2)
    job = at.request().job
    with pytest.raises(PermanentError, match=r"Raise max\.message\.bytes"):
        Executor(at.settings, job, threading.Event(), lambda _: take("200")).run()
    assert "the broker refused" not in caplog.text
    take("1000000")
    assert dict(at.execute(job).counts) == {"redriven": 2}


@pytest.mark.guarantee("P1.44")
def test_a_refused_record_is_found_without_a_transaction_per_record(
    at: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.show_dead_letters(60)
    at.database.execute(at.settings, "update dead_letter set key = null where original_offset in (21, 40)")
    job = at.request().job
    at.topics.configure(at.target, "cleanup.policy", "compact")
    known = Targets.__call__
    monkeypatch.setattr(Targets, "__call__", lambda self, topic: replace(known(self, topic), compacted=False))
    assert dict(at.execute(job).counts) == {"redriven": 58, "refused": 2}
    assert len(at.sent()) == 58
    assert sum(isinstance(event, Advanced) for event in at.events()) < 25


def test_a_chunk_may_be_larger_than_the_queue_of_the_client(at: Scenario) -> None:
    at.settings = changed(at.settings, "kafka", librdkafka={"queue.buffering.max.messages": 3})
    at.show_dead_letters(10)
    assert dict(at.execute(at.request().job).counts) == {"redriven": 10}
    assert len(at.sent()) == 10


@pytest.mark.guarantee("R1.4")
def test_the_state_is_the_same_whichever_comes_first(at: Scenario) -> None:
    at.show_dead_letters(2)
    at.execute(at.request().job)
    at.database.execute(at.settings, "delete from dead_letter")
    at.database.execute(at.settings, "delete from sink_progress where topic = %s", [at.settings.dead_letter.topic])
    at.read_operations()
    at.read()
    assert at.rows("select distinct state from dead_letter") == [("redriven",)]


def test_an_event_that_no_table_can_hold_is_waited_for_and_quarantined(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(1, delivery=2**31 - 1)
    asked = ("redrive", f"group={at.group}", "--without-members", "--reason", "fixed", "--send")
    mark = Mark(job="j", kind=Kind.ARCHIVE, group=at.group, by="a", wait_id="w", dead_letters=(at.place(),))
    beyond = encode_event(mark).replace(b'"number":0', b'"number":2147483648')
    at.topics.produce(at.settings.operations.topic, [Outgoing(beyond, b"j")])
    status, printed = typed(*asked)
    assert (status, f"{at.settings.operations.topic}:0:0: no record" in printed, at.sent()) == (1, True, [])
    at.read_operations()
    assert at.rows('select topic, "offset" from quarantine') == [(at.settings.operations.topic, 0)]
    assert (typed(*asked)[0], len(at.sent())) == (0, 1)
    at.read_operations()
    assert at.rows("select state, delivery from dead_letter") == [("redriven", 2**31 - 1)]


@pytest.mark.guarantee("R1.6")
@pytest.mark.parametrize("kind", [Kind.REDRIVE, Kind.ARCHIVE])
@pytest.mark.parametrize("marks_come_first", [True, False])
def test_what_fails_again_after_a_mark_is_open(at: Scenario, kind: Kind, marks_come_first: bool) -> None:
    at.show_dead_letters(2)
    at.execute(at.request(kind=kind).job)
    at.dead_letters(2)  # the same deliveries: the group was rewound, say
    if marks_come_first:
        at.read_operations()
    at.read()
    count = "select state, count(*) from dead_letter group by 1 order by 1"
    assert sorted(at.rows(count)) == sorted([(kind.state, 2), ("open", 2)])
    group, open_ones = f"group={at.group}", "state=open"
    found = at.request(group, open_ones, job="job-2")
    assert found.job.expected == ({"already_redriven": 2} if kind is Kind.REDRIVE else {"redriven": 2})
    again = at.request(group, open_ones, job="job-2", allowed=("no_members", "already_redriven"))
    assert at.execute(again.job).counts["redriven"] == 2
    at.read()
    assert at.rows("select state, count(*) from dead_letter where job = 'job-2' group by 1") == [("redriven", 4)]


def test_a_mark_of_one_dead_letter_is_of_the_others_of_its_delivery(at: Scenario) -> None:
    at.dead_letters(1)
    at.show_dead_letters(1)
    at.execute(at.request(f"place={at.place()}").job)
    at.read()
    assert at.rows("select state, count(*) from dead_letter group by 1") == [("redriven", 2)]


def test_archive_and_restore_leave_a_redriven_one_of_the_delivery_alone(at: Scenario) -> None:
    at.show_dead_letters(1)
    at.execute(at.request(job="redriven").job)
    at.show_dead_letters(1)
    for kind, before, after in ((Kind.ARCHIVE, "open", "archived"), (Kind.RESTORE, "archived", "open")):
        at.execute(at.request(f"group={at.group}", f"state={before}", kind=kind, job=kind.value).job)
        at.read()
        assert at.rows("select state from dead_letter order by 1") == [(after,), ("redriven",)]


@pytest.mark.guarantee("R1.6")
def test_redrives_of_a_record_are_not_those_of_another_one_at_its_place(at: Scenario) -> None:
    at.settings = changed(at.settings, "redrive", max_redrives=1)
    at.show_dead_letters(1)
    at.execute(at.request(job="job-1").job)
    # The same record failed again, and another one at its place, whose input was recreated.
    at.show_dead_letters(1, wait_id=new_id(), delivery=3)
    at.show_dead_letters(1, wait_id=new_id(), delivery=3, original_timestamp_ms=1_800_000_000_000)
    assert at.request(job="job-2").job.expected == {"already_redriven": 1, "max_redrives": 1, "redriven": 1}
    with at.database.connect(at.settings) as connection:
        connection.execute("delete from dead_letter where original_timestamp_ms < 1800000000000 and delivery = 3")
        assert OutcomeReader(at.settings, connection).of("job-1", asks_kafka=False) == {Outcome.UNKNOWN: 1}


def test_a_pause_counts_also_if_the_executor_begins_again(at: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    at.show_dead_letters(3)
    job, ben = at.request(rate=1.0).job, Asker("ben", authenticated=True, via="console")
    read_on, calls = TailReader.read_on, 0

    def paused_then_broken(self: TailReader) -> int:
        nonlocal calls
        calls += 1
        if calls == 4:
            change(at.settings, job.job, State.PAUSED, ben, "look first")
            raise TransientError("an outage")
        return read_on(self)

    monkeypatch.setattr(TailReader, "read_on", paused_then_broken)
    assert at.execute(job).state is State.PAUSED
    assert len(at.sent()) == 1
    assert at.execute(job).state is State.FINISHED
    assert len(at.sent()) == 3


def test_a_target_that_is_deleted_under_a_job_is_looked_up_again(at: Scenario) -> None:
    at.show_dead_letters(3)
    at.settings = changed(at.settings, "redrive", transaction_timeout_ms=3_000)
    deleted = threading.Event()

    def delete(progress: Progress) -> None:
        if progress.counts.get("redriven") and not deleted.is_set():
            at.topics.delete(at.target)
            deleted.set()

    Executor(at.settings, at.request(rate=0.5).job, threading.Event(), delete).run()
    at.read_operations()
    assert at.rows("select state, counts from operation") == [("finished", {"redriven": 1, "target_missing": 2})]


COUNT, TWICE, CHANGED = 60, 8, 3
# The tables say what late results and registrations say; how the sink writes these is shown elsewhere.
_AT_RANDOM: Final = """
update dead_letter set finished_late = true where reason = 'expired' and original_offset % 5 = 0;
insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset)
select wait_expiration_uuid, original_topic, now(), 'wait', 0, original_offset
from dead_letter where original_offset % 7 = 0 on conflict do nothing
"""


def write_at_random(at: Scenario, random: Random) -> None:
    """Write dead letters of every kind, some twice, and some of those with another value."""
    reasons = (Reason.FAILED, Reason.EXPIRED)
    written = [at.dead_letters(1, random.choice(reasons), offset)[0] for offset in range(COUNT)]
    twice = [random.choice(written) for _ in range(TWICE)]
    changed = [Outgoing(b"another value", one.key, one.headers) for one in twice[:CHANGED]]
    at.topics.produce(at.settings.dead_letter.topic, [*twice, *changed])
    at.read()
    with at.database.connect(at.settings) as connection:
        for statement in _AT_RANDOM.split(";"):
            connection.execute(statement.encode())


@pytest.mark.guarantee("R1.14")
@pytest.mark.parametrize("seed", range(3))
def test_the_categories_of_a_dry_run_are_those_of_the_run(at: Scenario, seed: int) -> None:
    random = Random(seed)
    write_at_random(at, random)
    # What earlier jobs have left, of which the tables know only some.
    for number, kind in enumerate((Kind.ARCHIVE, Kind.REDRIVE, Kind.RESTORE)):
        at.execute(at.request(kind=kind, job=f"earlier-{number}", limit=random.randint(5, 15)).job)
        if random.random() < 0.5:
            at.read_operations()
    for number, kind in enumerate(random.sample([*Kind, Kind.REDRIVE], 4)):
        allowed = tuple(sorted(random.sample(sorted(ALLOWABLE), 3)))
        if random.random() < 0.7:
            allowed = (*allowed, Category.NO_MEMBERS)
        asked = at.request(kind=kind, job=f"job-{number}", allowed=allowed).job
        before = len(at.sent())
        ended = at.execute(asked)
        assert ended.state is State.FINISHED
        assert {name: count for name, count in ended.counts.items() if count} == asked.expected
        assert sum(asked.expected.values()) == COUNT + TWICE + CHANGED
        require_marks(at, asked, len(at.sent()) - before)


def require_marks(at: Scenario, asked: Requested, sent: int) -> None:
    """Check that a job has marked what it counts, each delivery once, and that it sent what it marked."""
    marks = [event for event in at.events() if isinstance(event, Mark) and event.job == asked.job]
    per_delivery = Counter(mark.wait_id for mark in marks)
    assert max(per_delivery.values(), default=0) <= 1
    assert len(marks) == asked.expected.get(DONE[asked.kind], 0)
    assert sent == (len(marks) if asked.kind is Kind.REDRIVE else 0)


@pytest.mark.guarantee("R1.14")
@pytest.mark.parametrize("kind", [Kind.REDRIVE, Kind.ARCHIVE])
def test_what_arrives_after_the_dry_run_is_not_part_of_the_job(at: Scenario, kind: Kind) -> None:
    at.show_dead_letters(6, first=6)
    asked = at.request(kind=kind).job
    first = {one.place for one in at.topics.read(at.settings.dead_letter.topic)}
    # Of earlier records, so a job that took them would take them first.
    at.show_dead_letters(6)
    assert at.execute(asked).counts == {DONE[kind]: 6}
    acted = {one.as_written() for event in at.events() if isinstance(event, Mark) for one in event.dead_letters}
    assert acted == first


@pytest.mark.guarantee("R1.14")
def test_a_job_acts_on_no_more_than_its_dry_run_counted(at: Scenario) -> None:
    at.show_dead_letters(5)
    at.execute(at.request(kind=Kind.ARCHIVE, job="earlier", limit=3).job)
    at.read_operations()
    asked = at.request(f"group={at.group}", "state=open").job
    at.execute(at.request(kind=Kind.RESTORE, job="meanwhile").job)
    at.read_operations()
    assert at.execute(asked).counts == {Category.REDRIVEN: 2}
    assert len(at.sent()) == 2


@pytest.mark.guarantee("R1.2")
def test_dead_letters_of_another_group_are_for_its_own_executors(at: Scenario) -> None:
    at.show_dead_letters(3)
    asked = at.request(f"dlq={at.settings.dead_letter.topic}").job
    at.database.execute(at.settings, "update dead_letter set consumer_group = 'another' where original_offset = 1")
    assert at.execute(asked).counts == {Category.REDRIVEN: 2}
