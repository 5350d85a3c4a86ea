"""{our sink, Debezium's sink} x {our sweeper, Debezium's source}: the same rows, the same dead letters, whatever dies.

One story is played for all four at once (`combination_story`); each guarantee is tested by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.integration.connect.combination import DEBEZIUM, OURS, Combination, Maker, Stage, ids
from tests.integration.connect.combination_story import Story
from tests.integration.connect.golden_corpus import id_of
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
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


@pytest.fixture(params=range(4), ids=[f"{sink} sink, {exporter} exporter" for sink, exporter in COMBINATIONS])
def one(request: pytest.FixtureRequest, story: Story) -> Combination:
    """A combination after the story."""
    return story.combinations[request.param]


@pytest.mark.guarantee("C.5", "C.6")
def test_the_tables_are_those_of_the_log_after_a_crash_of_postgres(one: Combination) -> None:
    assert one.seen.shown_at_the_crash > 0
    assert len(one.seen.expected_rows) > 90
    assert one.seen.rows == one.seen.expected_rows


@pytest.mark.guarantee("C.1", "C.5")
def test_every_expired_registration_has_one_dead_letter_after_kills(one: Combination) -> None:
    letters, expected = one.letters(), one.expected_letters()
    assert len(expected) > 140
    assert ids(letters) == ids(expected)
    assert letters == expected


@pytest.mark.guarantee("C.3")
def test_no_registration_resolved_in_time_is_exported(one: Combination) -> None:
    assert len(one.written.resolved) > 140
    assert not one.written.resolved & set(ids(one.letters()))


@pytest.mark.guarantee("C.4")
def test_the_last_entry_of_an_exported_registration_is_its_tombstone(one: Combination) -> None:
    log = one.wait_topic()
    last = {record.key: record for record in log}
    exported = [last[wait_id.encode()] for wait_id in ids(one.letters())]
    assert {(record.value, record.headers) for record in exported} == {(None, (("WAIT_OUTCOME", b"expired"),))}
    assert len({(record.partition, record.key) for record in log}) == len(last), "an ID in two partitions"


def test_unsendable_rows_remain_in_the_table_and_block_nothing(one: Combination) -> None:
    assert one.seen.left_aside == ["NUL in a header's name", "half a surrogate pair in a header's name"]
    assert not {id_of(name) for name in one.seen.left_aside} & set(ids(one.letters()))


@pytest.mark.guarantee("C.3")
def test_with_a_dead_sink_the_outbox_omits_rows_that_may_be_settled(story: Story) -> None:
    (seen,) = (one.seen for one in story.combinations if (one.sink, one.exporter) == (OURS, DEBEZIUM))
    assert seen.resolved_and_shown, "nothing was resolved that the dead sink showed as open"
    assert seen.resolved_and_shown <= seen.due_and_held_back


def test_each_dead_letter_is_in_its_table_once(one: Combination) -> None:
    in_the_table = Counter(one.query("select wait_expiration_uuid, reason from dead_letter"))
    assert in_the_table == {(wait_id, "expired"): 1 for wait_id in ids(one.expected_letters())}


@pytest.mark.guarantee("C.8")
def test_exactly_the_malformed_records_are_quarantined(one: Combination) -> None:
    malformed = one.written.malformed
    assert len(malformed) > 40
    aside = {malformed.get(place, f"not malformed: {place}") for place in one.unreadable()}
    assert aside == set(malformed.values())


def test_the_kills_came_during_the_load_and_the_export(story: Story, one: Combination) -> None:
    assert one.seen.shown_at_the_sinks_end > len(one.seen.expected_rows), "some of the second load, not all of it"
    assert one.seen.written_at_the_exporters_end > 0
    assert one.seen.exported_at_the_exporters_end < len(one.expected_letters())
    assert story.restarted > 0, "no task had failed while Postgres was away"
