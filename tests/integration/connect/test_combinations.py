"""{our sink, Debezium's sink} x {our sweeper, Debezium's source}: the same rows, the same dead letters, whatever dies.

One story is played for all four at once (`combination_story`); each promise is looked at by itself.
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

# The story counts as the set-up of whichever test comes first.
pytestmark = pytest.mark.timeout(600)

MAKERS: tuple[Maker, ...] = (OURS, DEBEZIUM)
COMBINATIONS = tuple(product(MAKERS, MAKERS))


@pytest.fixture(scope="module")
def story(breakable: OwnStack, connect_plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The story, played to its end, on a stack that nobody else uses meanwhile."""
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
    told = Story(stage, worker, [Combination(sink, exporter, stage) for sink, exporter in COMBINATIONS])
    try:
        told.play()
        yield told
    finally:
        told.close()
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
def test_the_view_shows_what_the_log_leaves_open_byte_for_byte_although_postgres_crashed_in_mid_load(
    seen: Seen,
) -> None:
    assert seen.shown_at_the_crash > 0
    assert len(seen.expected_rows) > 90
    assert seen.rows == seen.expected_rows


@pytest.mark.guarantee("C.1", "C.5")
def test_every_expired_registration_has_exactly_one_dead_letter_byte_for_byte_although_all_were_killed(
    seen: Seen,
) -> None:
    assert len(seen.expected_letters) > 140
    assert ids(seen.letters) == ids(seen.expected_letters)
    assert seen.letters == seen.expected_letters


@pytest.mark.guarantee("C.3")
def test_nothing_that_was_resolved_in_time_is_exported(seen: Seen) -> None:
    assert len(seen.resolved) > 140
    assert not seen.resolved & set(ids(seen.letters))


@pytest.mark.guarantee("C.4")
def test_the_wait_topics_last_entry_of_whatever_was_exported_is_an_expired_tombstone_in_its_partition(
    seen: Seen,
) -> None:
    last = {record.key: record for record in seen.wait_topic}
    exported = [last[wait_id.encode()] for wait_id in ids(seen.letters)]
    assert {(record.value, record.headers) for record in exported} == {(None, (("WAIT_OUTCOME", b"expired"),))}
    assert len({(record.partition, record.key) for record in seen.wait_topic}) == len(last), "an id in two partitions"


def test_what_no_client_can_send_stays_in_the_table_and_holds_nothing_up(seen: Seen) -> None:
    assert seen.left_aside == ["NUL in a header's name", "half a surrogate pair in a header's name"]
    assert not {id_of(name) for name in seen.left_aside} & set(ids(seen.letters))


@pytest.mark.guarantee("C.3")
def test_behind_a_dead_sink_of_ours_the_outbox_holds_back_what_it_cannot_know_to_be_open(story: Story) -> None:
    seen = story.seen[label_of(OURS, DEBEZIUM)]
    assert seen.resolved_and_shown, "nothing was resolved that the dead sink showed as open"
    assert seen.resolved_and_shown <= seen.due_and_held_back


def test_each_dead_letter_stands_in_its_table_once(seen: Seen) -> None:
    assert seen.in_the_table == {(wait_id, "expired"): 1 for wait_id in ids(seen.expected_letters)}


@pytest.mark.guarantee("C.8")
def test_what_cannot_be_read_is_put_aside_all_of_it_and_nothing_else(seen: Seen) -> None:
    assert len(seen.malformed) > 40
    aside = {seen.malformed.get(place, f"not malformed: {place}") for place in seen.unreadable}
    assert aside == set(seen.malformed.values())


def test_the_sink_was_killed_in_mid_load_and_the_exporter_in_mid_export(story: Story, seen: Seen) -> None:
    assert seen.shown_at_the_sinks_end > len(seen.expected_rows), "some of the second load, not all of it"
    assert seen.written_at_the_exporters_end > 0
    assert seen.exported_at_the_exporters_end < len(seen.expected_letters)
    assert set(seen.statuses.values()) <= {-signal.SIGKILL}
    assert story.restarted > 0, "no task had failed while Postgres was away"
