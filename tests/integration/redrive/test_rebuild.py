"""R1: jobs, marks and the states of dead letters are the same after a rebuild, and after a restore of Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sink.rebuild.tables import rebuild
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.test_edit import VALUES, edit, request_of
from tests.integration.sink.conftest import StartSink
from tests.support.jobs import ask_for_approval
from tests.support.settings import changed
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Mark
from wait_registry.settings.tree import Settings
from waitreg.redrive.operator_events import approve, change_rate
from waitreg.redrive.request import Asker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tables = dict[str, list[tuple[Any, ...]]]

SHOWN = {
    "operation": "select * from operation order by job",
    "dead_letter_mark": 'select * from dead_letter_mark order by "offset"',
    "operator_event": 'select * from operator_event order by "offset"',
    "dead_letter": "select original_offset, state, state_at, state_by, job from dead_letter order by original_offset",
}
DUMPED = ("wait", "dead_letter", "operation", "dead_letter_mark", "operator_event", "sink_progress")
SPOILT = """
update dead_letter_mark set job = 'other' where "offset" = (select min("offset") from dead_letter_mark);
delete from dead_letter_mark where "offset" = (select max("offset") from dead_letter_mark);
update operator_event set done_by = 'eve';
update operation set state = 'running', cursor = null where job = 'job-1';
delete from operation where job = 'job-2';
update dead_letter set state = 'archived', job = 'unknown' where original_offset = 3;
update dead_letter set state = 'open', state_at = null, state_by = null, job = null where original_offset < 2;
"""


def tables(at: Scenario) -> Tables:
    """Return what the tables say of operations."""
    return {name: list(at.database.rows(at.settings, query)) for name, query in SHOWN.items()}


def drain(at: Scenario, start_sink: StartSink, settings: Settings | None = None) -> None:
    """Run a sink until all that is in the topics is in Postgres."""
    assert start_sink(settings or at.settings, once=True).wait_ended() is None


def act(at: Scenario) -> None:
    """Redrive two dead letters, archive one and restore it, and archive another; the others stay open."""
    first = at.request(job="job-1", limit=2).job
    ask_for_approval(at.settings, first)
    approve(at.settings, first.job, Asker("ben", authenticated=True, via="console"), "looked at them")
    change_rate(at.settings, first.job, 200.0, Asker("ben", authenticated=True, via="console"), "faster")
    at.execute(first)
    restored, archived = (place_of(at, number) for number in (2, 4))
    at.execute(at.request(restored, kind=Kind.ARCHIVE, job="job-2").job)
    at.execute(at.request(restored, kind=Kind.RESTORE, job="job-3").job)
    at.execute(at.request(archived, kind=Kind.ARCHIVE, job="job-4").job)


def place_of(at: Scenario, number: int) -> str:
    """Return the condition that means the dead letter of an input record."""
    query = f'select topic, partition, "offset" from dead_letter where original_offset = {number}'
    [(topic, partition, offset)] = at.rows(query)
    return f"place={topic}:{partition}:{offset}"


def states(at: Scenario) -> list[str]:
    """Return the states of all dead letters, by the offset of their records."""
    return [state for _, state, *_ in tables(at)["dead_letter"]]


def dump(at: Scenario) -> None:
    """Keep a copy of the tables."""
    with at.database.connect(at.settings) as connection:
        for name in DUMPED:
            connection.execute(f"create table dump_{name} as table {name}".encode())


def restore(at: Scenario) -> None:
    """Put the tables back to the copy, all at once."""
    with at.database.connect(at.settings) as connection, connection.transaction():
        for name in DUMPED:
            connection.execute(f"truncate {name}; insert into {name} select * from dump_{name}".encode())


def wait_ids_sent(at: Scenario) -> list[str]:
    """Return the wait IDs of the deliveries that were redriven."""
    return [mark.wait_id for mark in at.events() if isinstance(mark, Mark) and mark.kind is Kind.REDRIVE]


@pytest.mark.guarantee("R1.9")
def test_a_rebuild_makes_what_the_topic_says(at: Scenario, start_sink: StartSink, spark: SparkSession) -> None:
    at.dead_letters(6)
    drain(at, start_sink)
    act(at)
    drain(at, start_sink)
    exact = tables(at)
    assert states(at) == ["redriven", "redriven", "open", "open", "archived", "open"]
    assert rebuild(at.settings, spark, dry_run=True).changed == 0
    at.database.execute(at.settings, SPOILT)
    spoilt = tables(at)
    reported = rebuild(at.settings, spark, dry_run=True).operations
    assert tables(at) == spoilt
    done = rebuild(at.settings, spark).operations
    assert done is not None and done == reported
    assert (done.marks, done.jobs, done.events, done.states) == (2, 2, 6, 3)
    assert tables(at) == exact
    at.execute(at.request(job="job-5").job)
    drain(at, start_sink)
    assert len(wait_ids_sent(at)) == len(set(wait_ids_sent(at))) == 5
    assert states(at).count("redriven") == 5


@pytest.mark.guarantee("R1.9")
def test_a_rebuild_makes_the_same_edits(at: Scenario, start_sink: StartSink, spark: SparkSession) -> None:
    at.dead_letters(1)
    drain(at, start_sink)
    at.execute(request_of(at, edit(at, value=VALUES["1.2 MiB"])))
    drain(at, start_sink)
    exact = tables(at)
    shown = "select edited, length(replacement ->> 'value') from dead_letter_mark join operation using (job)"
    assert at.rows(shown) == [(True, 1_677_656)]
    at.database.execute(
        at.settings, "update operation set replacement = null; update dead_letter_mark set edited = false"
    )
    done = rebuild(at.settings, spark).operations
    assert done is not None and (done.marks, done.jobs) == (1, 1)
    assert tables(at) == exact


@pytest.mark.guarantee("R1.9")
@pytest.mark.parametrize("rebuilt", [False, True], ids=["the sink continues", "rebuilt"])
@pytest.mark.parametrize("with_dead_letters", [False, True], ids=["before the dead letters", "with the dead letters"])
def test_after_a_restore_of_postgres_the_tables_are_the_same(
    at: Scenario, start_sink: StartSink, spark: SparkSession, with_dead_letters: bool, rebuilt: bool
) -> None:
    if not with_dead_letters:
        drain(at, start_sink)
        dump(at)
    at.dead_letters(6)
    drain(at, start_sink)
    if with_dead_letters:
        at.execute(at.request(job="job-0", limit=1).job)
        dump(at)
    act(at)
    drain(at, start_sink)
    exact, sent = tables(at), len(at.sent())
    restore(at)
    if with_dead_letters:
        # The tables have no mark of it, and the operations topic has.
        assert at.request(place_of(at, 0)).job.expected == {"already_redriven": 1}
    if rebuilt:
        rebuild(at.settings, spark)
    drain(at, start_sink)
    assert tables(at) == exact
    assert len(at.sent()) == sent


@pytest.mark.guarantee("R1.9")
@pytest.mark.parametrize("operations_first", [False, True])
def test_either_topic_first_makes_the_same_tables(at: Scenario, start_sink: StartSink, operations_first: bool) -> None:
    at.dead_letters(6)
    drain(at, start_sink)
    act(at)
    drain(at, start_sink)
    exact = tables(at)
    at.database.execute(at.settings, "truncate dead_letter, operation, dead_letter_mark, sink_progress")
    if operations_first:
        at.read_operations()
    at.read()
    assert tables(at) == exact


@pytest.mark.guarantee("R1.9")
def test_marks_of_a_lost_topic_count_with_the_next(at: Scenario, start_sink: StartSink, spark: SparkSession) -> None:
    at.dead_letters(4)
    drain(at, start_sink)
    at.execute(at.request(job="job-1", limit=2).job)
    drain(at, start_sink)
    before = tables(at)["dead_letter"]
    at.topics.delete(at.settings.operations.topic)
    at.topics.create_own(at.settings)
    with pytest.raises(ConfigurationError, match=r"recreated.*set operations\.topic everywhere"):
        rebuild(at.settings, spark)
    name = f"{at.settings.operations.topic}.next"
    at.settings = changed(at.settings, "operations", topic=name)
    at.topics.create_own(at.settings)
    drain(at, start_sink)
    assert tables(at)["dead_letter"] == before
    counts = at.execute(at.request("state!=archived", job="job-2").job).counts
    assert dict(counts) == {"already_redriven": 2, "redriven": 2}
    drain(at, start_sink)
    exact = tables(at)
    assert [offset < 0 for offset, *_ in exact["dead_letter_mark"]] == [True, True, False, False]
    assert rebuild(at.settings, spark).operations is not None
    assert tables(at) == exact
    # Without a position it can't be known of which topic the marks are.
    at.database.execute(at.settings, "delete from sink_progress where topic = %s", [name])
    rebuild(at.settings, spark)
    found = tables(at)
    assert [mark[1:] for mark in found["dead_letter_mark"]] == [mark[1:] for mark in exact["dead_letter_mark"]]
    assert (found["operation"], found["dead_letter"]) == (exact["operation"], exact["dead_letter"])
