"""`waitreg query`: what it prints and how it refuses; what each query answers is shown in tests/integration/queries."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.conftest import RunHere, SettingsFactory
from tests.support.command import Ended, run_waitreg
from tests.support.database import Database
from wait_registry.postgres.query_file import KINDS, load_query, parse_query, query_names
from wait_registry.settings.tree import Settings

_INCIDENT = """
insert into wait (wait_expiration_uuid, original_topic, original_key, wait_expiration_time, consumer_group, instance,
                  wait_topic, wait_partition, wait_offset, created_at)
values ('id-1', 'orders', 'k', now() - interval '1 min', 'billing', 'host-1', 'wait', 0, 7, now() - interval '30 min'),
       ('id-2', 'orders', 'k', now() + interval '1 hour', 'billing', 'host-1', 'wait', 0, 8, now() - interval '20 min'),
       ('id-3', 'orders', 'k', now() + interval '1 hour', 'billing', 'host-1', 'wait', 0, 9, now());
insert into dead_letter (topic, partition, "offset", dead_letter_time) values ('dlq', 0, 0, now());
"""


@pytest.fixture
def incident(settings_for: SettingsFactory, database: Database) -> Iterator[Settings]:
    """A schema in which something is stuck."""
    settings = settings_for()
    database.install(settings)
    database.execute(settings, _INCIDENT)
    yield settings


Query = Callable[..., Ended]


@pytest.fixture
def query(run_here: RunHere) -> Query:
    """Run `waitreg query` in this process, with the given settings."""
    return lambda settings, *arguments: run_here(settings, "query", *arguments)


def test_list_names_every_query_with_its_question_and_parameters(tmp_path: Path) -> None:
    listed = run_waitreg(tmp_path, "query", "LIST")
    assert listed.code == 0, listed.errors
    lines = listed.output.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [f"{kind}:" for kind in KINDS]
    named = [re.match(r"  (\w+) +\S.*\?", line) for line in lines]
    assert sorted(found[1] for found in named if found) == query_names()
    place = next(number for number, line in enumerate(lines) if line.startswith("  record_by_key "))
    assert lines[place + 1].split() == ["key=...", "[rows=50]"]
    assert max(map(len, lines)) < 150


def test_stuck_records_are_shown_with_what_to_do_below(incident: Settings, tmp_path: Path) -> None:
    asked = run_waitreg(tmp_path, "query", "stuck_now", settings=incident)
    assert asked.code == 0, asked.errors
    lines = asked.output.splitlines()
    assert lines[0] == "-- row 1", "wider than 120 columns"
    fields = dict(line.split(maxsplit=1) for line in lines[1 : lines.index("(1 row)")])
    assert (fields["consumer_group"], fields["registrations"], fields["overdue"]) == ("billing", "2", "1")
    age, blank, *advice = lines[lines.index("(1 row)") + 1 :]
    assert age.startswith("age unknown: the tables have rows") and "WAITREG_SINK__KIND=connect" in age
    assert (blank, "\n".join(advice)) == ("", load_query("stuck_now").advice)


def test_a_parameter_narrows_the_question_and_json_is_rows_alone(incident: Settings, query: Query) -> None:
    asked = query(incident, "stuck_now", "minutes=25", "--json")
    assert [json.loads(line)["registrations"] for line in asked.output.splitlines()] == [1]


@pytest.mark.parametrize(("silent_s", "old"), [(30, False), (145, True)])
def test_an_answer_says_how_old_its_view_is_and_warns_when_no_sink_writes(
    silent_s: int, old: bool, incident: Settings, database: Database, query: Query
) -> None:
    topic = incident.wait.topic
    database.execute(
        incident,
        # Another wait topic, left long ago, is nothing to be warned of.
        "insert into sink_progress values (%s, 'id', 0, 5, now() - make_interval(secs => %s),"
        " now() - make_interval(secs => %s)), ('left', 'id', 0, 5, now() - interval '1 day',"
        " now() - interval '1 day')",
        (topic, silent_s, silent_s),
    )
    table = query(incident, "stuck_now")
    said = next(line for line in table.output.splitlines() if line.startswith(f"tables of {topic} as of "))
    assert said.endswith("the answer is old (waitreg query sink_freshness)") is old
    assert ("2 min 2" in said) is old
    rows = query(incident, "stuck_now", "--json")
    assert "tables of" not in rows.output
    assert f"tables of {topic} as of " in rows.errors
    assert ("the answer is old" in rows.errors) is old


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stuck"], "did you mean 'stuck_now'?"),
        (["stuck_now", "minutes=soon"], "minutes: 'soon' isn't a whole number"),
        (["stuck_now", "minutes"], "'minutes' is no PARAMETER=VALUE"),
        (["stuck_now", "hours=1"], "has no parameter 'hours'; it has: minutes"),
        (["oldest_waits", "rows=-1"], "rows: '-1' isn't a whole number"),
        (["burst_timeline", "from=yesterdy"], "'yesterdy' isn't a time"),
        (["dead_letters_over_time", "minutes=0"], "stride must be greater than zero"),
        (["record_by_key"], "waitreg query record_by_key key=..."),
        (["record_by_key", r"key=\xzz"], 'invalid hexadecimal digit: "z"'),
        (["record_by_key", "key=\udcff"], r"only a key may be other bytes, given as \x and hexadecimal digits"),
        (["record_by_offset", "topic=t", "partition=0"], "needs offset: waitreg query record_by_offset offset=..."),
        (
            ["record_by_offset", "topic=t", "partition=0", "offset=99999999999999999999"],
            "is too large: the most is 9223372036854775807",
        ),
    ],
    ids=lambda value: repr(" ".join(value)) if isinstance(value, list) else "",
)
def test_unusable_values_end_with_2(arguments: list[str], message: str, incident: Settings, query: Query) -> None:
    refused = query(incident, *arguments)
    assert refused.code == 2
    assert message in refused.errors
    assert refused.output == ""
    assert refused.errors.startswith("waitreg query: ")
    assert refused.errors.count("\n") == 1


def test_a_user_without_permission_learns_what_to_grant(incident: Settings, database: Database, query: Query) -> None:
    schema = incident.postgres.schema_name
    reader = f"reader_{schema}"
    with database.connect(incident) as connection:
        connection.execute(f"create role {reader} login password 'reader'".encode())
        connection.execute(f"grant usage on schema {schema} to {reader}".encode())
        connection.execute(f"grant select on wait_registry_migration to {reader}".encode())
        try:
            stranger = incident.postgres.model_copy(
                update={"url": SecretStr(re.sub("//[^@]*@", f"//{reader}:reader@", database.url))}
            )
            settings = incident.model_copy(update={"postgres": stranger})
            refused = query(settings, "stuck_now")
            connection.execute(f"grant select on wait to {reader}".encode())
            answered = query(settings, "stuck_now")
        finally:
            connection.execute(f"drop owned by {reader}; drop role {reader}".encode())
    assert refused.code == 2
    assert "permission denied for table wait: grant select on it" in refused.errors
    assert (answered.code, "age of the tables unknown: permission denied" in answered.output) == (0, True)


def test_a_time_may_be_relative_to_now_and_options_stand_anywhere(incident: Settings, query: Query) -> None:
    def waiting(*span: str) -> int:
        asked = query(incident, "burst_timeline", "--json", *span)
        assert asked.code == 0, asked.errors
        return sum(json.loads(line)["still_waiting"] for line in asked.output.splitlines())

    assert (waiting(), waiting("from=25 minutes ago"), waiting("from=1 hour ago", "to=25 minutes ago")) == (3, 2, 1)


def test_a_reader_that_ends_early_gets_no_traceback(tmp_path: Path) -> None:
    listed = subprocess.run(
        f"{sys.executable} -m waitreg query LIST | head -1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (listed.stdout, listed.stderr) == (f"{KINDS[0]}:\n", "")


def test_empty_tables_say_they_mean_nothing(settings_for: SettingsFactory, database: Database, query: Query) -> None:
    settings = settings_for()
    database.install(settings)
    assert "no tables yet" in query(settings, "stuck_now").output


def test_a_query_can_change_nothing(incident: Settings, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    change = parse_query("stuck_now", "-- What?\n-- Kind: the system\ndelete from wait")
    monkeypatch.setattr("waitreg.query.load_query", lambda _: change)
    refused = query(incident, "stuck_now")
    assert refused.code != 0
    assert "read-only transaction" in refused.errors
