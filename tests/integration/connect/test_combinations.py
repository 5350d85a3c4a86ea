"""{our sink, Debezium's sink} x {our sweeper, Debezium's source}: the same rows, the same dead letters, whatever dies.

One story is played for all four at once (`combination_story`); each guarantee is tested by itself.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.integration.connect.combination_story import Seen, Story, ids
from tests.support.combination import DEBEZIUM, OURS, Combination, Maker, Stage, label_of
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.golden_corpus import id_of
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from wait_registry.local.connect_worker import ConnectWorker
from wait_registry.local.ports import free_ports

# The story counts as the setup of whichever test comes first.
pytestmark = pytest.mark.timeout(600)

MAKERS: tuple[Maker, ...] = (OURS, DEBEZIUM)
COMBINATIONS = tuple(product(MAKERS, MAKERS))


@pytest.fixture(scope="module")
def story(breakable: OwnStack, connect_plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The story, played to its end, on a stack that no other test uses meanwhile."""
    directory = tmp_path_factory.mktemp("combinations")
    for server in (breakable.broker, breakable.postgres):
        (server.resume if server.running else server.start)()
    worker = ConnectWorker(
        directory / "worker",
        free_ports(1)[0],
        breakable.bootstrap_servers,
        plugins=[connect_plugin],
        group=Names()("connect"),
        environment={"POSTGRES_PASSWORD": ""},
        heap="768m",
    )
    stage = Stage(
        breakable,
        Topics(breakable.bootstrap_servers),
        Database(breakable.postgres_url),
        Services(directory),
        directory,
        ConnectRest(worker.url),
    )
    played = Story(stage, worker, [Combination(sink, exporter, stage) for sink, exporter in COMBINATIONS])
    try:
        played.play()
        yield played
    finally:
        played.close()
        stage.services.close()
        worker.kill()
        breakable.postgres.start()
        stage.topics.close()
        stage.database.close()


@pytest.fixture(params=COMBINATIONS, ids=[label_of(*combination) for combination in COMBINATIONS])
def seen(request: pytest.FixtureRequest, story: Story) -> Seen:
    """What was seen of one combination."""
    return story.seen[label_of(*request.param)]


@pytest.mark.guarantee("C.5", "C.6")
def test_the_tables_are_those_of_the_log_after_a_crash_of_postgres(
    seen: Seen,
) -> None:
    assert seen.shown_at_the_crash > 0
    assert len(seen.expected_rows) > 90
    assert seen.rows == seen.expected_rows


@pytest.mark.guarantee("C.1", "C.5")
def test_every_expired_registration_has_one_dead_letter_after_kills(
    seen: Seen,
) -> None:
    assert len(seen.expected_letters) > 140
    assert ids(seen.letters) == ids(seen.expected_letters)
    assert seen.letters == seen.expected_letters


@pytest.mark.guarantee("C.3")
def test_no_registration_resolved_in_time_is_exported(seen: Seen) -> None:
    assert len(seen.resolved) > 140
    assert not seen.resolved & set(ids(seen.letters))


@pytest.mark.guarantee("C.4")
def test_the_last_entry_of_an_exported_registration_is_its_tombstone(
    seen: Seen,
) -> None:
    last = {record.key: record for record in seen.wait_topic}
    exported = [last[wait_id.encode()] for wait_id in ids(seen.letters)]
    assert {(record.value, record.headers) for record in exported} == {(None, (("WAIT_OUTCOME", b"expired"),))}
    assert len({(record.partition, record.key) for record in seen.wait_topic}) == len(last), "an id in two partitions"


def test_unsendable_rows_remain_in_the_table_and_block_nothing(seen: Seen) -> None:
    assert seen.left_aside == ["NUL in a header's name", "half a surrogate pair in a header's name"]
    assert not {id_of(name) for name in seen.left_aside} & set(ids(seen.letters))


@pytest.mark.guarantee("C.3")
def test_with_a_dead_sink_the_outbox_omits_rows_that_may_be_settled(story: Story) -> None:
    seen = story.seen[label_of(OURS, DEBEZIUM)]
    assert seen.resolved_and_shown, "nothing was resolved that the dead sink showed as open"
    assert seen.resolved_and_shown <= seen.due_and_held_back


def test_each_dead_letter_is_in_its_table_once(seen: Seen) -> None:
    assert seen.in_the_table == {(wait_id, "expired"): 1 for wait_id in ids(seen.expected_letters)}


@pytest.mark.guarantee("C.8")
def test_exactly_the_malformed_records_are_quarantined(seen: Seen) -> None:
    assert len(seen.malformed) > 40
    aside = {seen.malformed.get(place, f"not malformed: {place}") for place in seen.unreadable}
    assert aside == set(seen.malformed.values())


def test_the_kills_came_during_the_load_and_the_export(story: Story, seen: Seen) -> None:
    assert seen.shown_at_the_sinks_end > len(seen.expected_rows), "some of the second load, not all of it"
    assert seen.written_at_the_exporters_end > 0
    assert seen.exported_at_the_exporters_end < len(seen.expected_letters)
    assert set(seen.statuses.values()) <= {-signal.SIGKILL}
    assert story.restarted > 0, "no task had failed while Postgres was away"
