"""What a dry run says of each dead letter is what the job does, whatever the dead letters and the options."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

import pytest

from redrive.category import ALLOWABLE, DONE, Category
from tests.integration.redrive.scenario import Scenario
from tests.support.kafka_io import Outgoing
from wait_registry.records.dead_letter import Reason
from wait_registry.records.operation import Kind, Mark, Requested, State

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
    at.dead_letters(6, first=6)
    at.read()
    asked = at.request(kind=kind).job
    first = {one.place for one in at.topics.read(at.settings.dead_letter.topic)}
    # Of earlier records, so a job that took them would take them first.
    at.dead_letters(6)
    at.read()
    assert at.execute(asked).counts == {DONE[kind]: 6}
    acted = {place for event in at.events() if isinstance(event, Mark) for place in event.dead_letters}
    assert acted == first


@pytest.mark.guarantee("R1.14")
def test_a_job_acts_on_no_more_than_its_dry_run_counted(at: Scenario) -> None:
    at.dead_letters(5)
    at.read()
    at.execute(at.request(kind=Kind.ARCHIVE, job="earlier", limit=3).job)
    at.read_operations()
    asked = at.request(f"group={at.group}", "state=open").job
    at.execute(at.request(kind=Kind.RESTORE, job="meanwhile").job)
    at.read_operations()
    assert at.execute(asked).counts == {Category.REDRIVEN: 2}
    assert len(at.sent()) == 2


@pytest.mark.guarantee("R1.2")
def test_dead_letters_of_another_group_are_for_its_own_executors(at: Scenario) -> None:
    at.dead_letters(3)
    at.read()
    asked = at.request(f"dlq={at.settings.dead_letter.topic}").job
    with at.database.connect(at.settings) as connection:
        connection.execute(b"update dead_letter set consumer_group = 'another' where original_offset = 1")
    assert at.execute(asked).counts == {Category.REDRIVEN: 2}
