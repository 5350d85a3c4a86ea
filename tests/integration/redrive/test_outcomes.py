"""What became of redriven records, with a real group that handles them, and that it is found by an index."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka import TopicPartition

from tests.conftest import SettingsFactory
from tests.integration.queries.plan import nodes_of
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.test_statement_plans import is_whole
from tests.support.committed_offsets import commit_as_operator
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.dead_letters import outcome_reader as module
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.dead_letters.listing import page
from wait_registry.dead_letters.outcome import Outcome
from wait_registry.dead_letters.outcome_reader import ALL, QUERIES, OutcomeReader, last_redrive, outcome_rows
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import end_offsets


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait no longer for a sink that the test holds in its hands."""
    monkeypatch.setattr(module, "PATIENCE_S", 1.0)


def became(at: Scenario, job: str = "job-1", after: int = 0) -> dict[Outcome, int]:
    with at.database.connect(at.settings) as connection:
        return dict(OutcomeReader(at.settings, connection).of(job, after))


def wait_for_outcomes(at: Scenario, expected: dict[Outcome, int]) -> None:
    """Wait for these outcomes: on a busy machine, Kafka may not answer in time."""
    wait_until(lambda: became(at) == expected, 60, f"{expected}")


def outcomes_of_deliveries(at: Scenario) -> dict[int, Outcome]:
    """Return what became of each redriven delivery, by the offset of its record."""
    found = {}
    with at.database.connect(at.settings) as connection:
        for offset, wait_id in at.rows(
            "select original_offset, wait_expiration_uuid from dead_letter where state = 'redriven'"
        ):
            redriven = last_redrive(at.settings, connection, str(wait_id))
            assert redriven is not None and (redriven.job, redriven.by) == ("job-1", "anna")
            found[int(str(offset))] = redriven.outcome
    return found


@pytest.mark.guarantee("R1.12")
def test_each_record_is_shown_with_what_became_of_it(at: Scenario, handling: Handling, impatient: None) -> None:
    at.show_dead_letters(5)
    at.read_waits()
    at.execute(at.request().job)
    at.read_operations()
    wait_for_outcomes(at, {Outcome.NOT_CONSUMED: 5})
    handling.refused, handling.held = {b"value 0"}, {b"value 1"}
    processor = handling.start()
    wait_until(lambda: processor.settled == {"done": 3, "dead_lettered": 1}, 60, "the four that end")
    # Behind what Kafka has, the tables show only what is so.
    wait_for_outcomes(at, {Outcome.UNKNOWN: 5})
    at.read_waits()
    at.read()
    wait_for_outcomes(at, {Outcome.DEAD_AGAIN: 1, Outcome.WAITING: 1, Outcome.SETTLED: 3})
    rows = [("waiting", 1), ("dead letter again", 1), ("done, discarded or in a retry topic", 3)]
    deliveries = {0: Outcome.DEAD_AGAIN, 1: Outcome.WAITING} | dict.fromkeys((2, 3, 4), Outcome.SETTLED)
    with at.database.connect(at.settings) as connection:
        wait_until(lambda: outcome_rows(at.settings, connection, "job-1").rows == rows, 60, "the rows")
    wait_until(lambda: outcomes_of_deliveries(at) == deliveries, 60, "each delivery")
    again = parse_filter(["again_of=job-1"], datetime.now(UTC))
    with at.database.connect(at.settings) as connection:
        assert [row[8] for row in page(connection, again, 10).rows] == [f"{at.input}:0:0"]
    handling.ended.set()
    wait_until(lambda: processor.settled == {"done": 4, "dead_lettered": 1}, 60, "the one that was held")
    at.read_waits()
    wait_for_outcomes(at, {Outcome.DEAD_AGAIN: 1, Outcome.SETTLED: 4})


@pytest.mark.guarantee("R1.12")
def test_an_end_without_its_dead_letter_yet_is_unknown(at: Scenario, handling: Handling, impatient: None) -> None:
    at.show_dead_letters(1)
    at.execute(at.request().job)
    at.read_operations()
    handling.refused = {b"value 0"}
    processor = handling.start()
    wait_until(lambda: processor.settled == {"dead_lettered": 1}, 60, "the failure")
    processor.stop()
    at.read_waits()
    assert became(at) == {Outcome.UNKNOWN: 1}
    at.read()
    wait_for_outcomes(at, {Outcome.DEAD_AGAIN: 1})


def test_a_dead_letter_of_another_redrive_of_the_record_is_not_one_of_this(at: Scenario, handling: Handling) -> None:
    """Both send the same delivery, so the number of the next one doesn't say which of the two is dead."""
    at.show_dead_letters(1)
    at.execute(at.request().job)
    processor = handling.start()
    wait_until(lambda: processor.settled == {"done": 1}, 60, "the first one")
    handling.refused = {b"value 0"}
    at.read_operations()
    again = at.request("state=redriven", job="job-2", allowed=("already_redriven", "no_members")).job
    at.execute(again)
    wait_until(lambda: processor.settled == {"done": 1, "dead_lettered": 1}, 60, "the second one")
    processor.stop()
    at.read_waits()
    at.read()
    assert became(at, "job-1") == {Outcome.SETTLED: 1}
    assert became(at, "job-2") == {Outcome.DEAD_AGAIN: 1}


@pytest.mark.guarantee("R1.12")
def test_what_another_program_had_a_group_pass_does_not_count_as_done(at: Scenario, impatient: None) -> None:
    at.show_dead_letters(2)
    at.read_waits()
    at.execute(at.request().job)
    at.read_operations()
    ends = end_offsets(at.admin, at.target, range(describe_topic(at.admin, at.target).partitions))
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.target, *end) for end in ends.items()])
    wait_for_outcomes(at, {Outcome.UNKNOWN: 2})


ROWS = 200_000
# Of job 0 are 1,000 marks, and of these 10 came back.
FILL = f"""
    insert into dead_letter_mark (
        "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
        original_offset, target_topic, target_partition, target_offset, next_wait_id, delivery, marked_at, marked_by
    )
    select i, 'job-' || i / 1000, 'redrive', 'redriven', i::text, 1, 'shop', 'orders', i % 8, i, 'target', i % 8, i,
        'next ' || i, 2, now(), 'anna'
    from generate_series(0, {ROWS} - 1) as i;
    insert into dead_letter (
        topic, partition, "offset", reason, wait_expiration_uuid, consumer_group, original_topic, original_partition,
        original_offset, delivery
    )
    select 'dlq', 0, i, 'failed', i::text, 'shop', 'orders', i % 8, i, 1 from generate_series(0, {ROWS} - 1) as i
    union all
    select 'dlq', 1, i, 'failed', 'next ' || i, 'shop', 'orders', i % 8, i, 2 from generate_series(0, 999, 100) as i;
    insert into wait (
        wait_expiration_uuid, original_topic, original_partition, original_offset, consumer_group, delivery,
        wait_expiration_time, wait_topic, wait_partition, wait_offset
    )
    select 'other ' || i, 'orders', i % 8, i + 1000000, 'shop', 1, now(), 'wait', i % 8, i
    from generate_series(0, {ROWS} - 1) as i;
    analyze dead_letter; analyze dead_letter_mark; analyze wait;
"""
VALUES = {
    "job": "job-0",
    "after": -1,
    "until": ALL,
    "wait_id": "none",
    "topics": ["target"] * 8,
    "partitions": list(range(8)),
    "committed": [ROWS] * 8,
}


@pytest.mark.parametrize(
    ("query", "rows"), [("comebacks", 10), ("dead_again", 10), ("registered", 0), ("sent", 1000), ("targets", 8)]
)
def test_outcomes_read_no_other_rows(query: str, rows: int, settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for({})
    database.install(settings)
    with database.connect(settings) as connection:
        connection.execute(FILL)
        asked = QUERIES[query].encode()
        [[document]] = connection.execute(b"explain (format json) " + asked, VALUES).fetchall()
        assert [node for node in nodes_of(document[0]["Plan"]) if is_whole(node)] == []
        assert len(connection.execute(asked, VALUES).fetchall()) == rows
