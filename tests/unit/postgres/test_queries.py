"""SQL is found by name in files that belong to the distribution, and the incident queries are well-formed."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from wait_registry.postgres.migrations import migrations
from wait_registry.postgres.queries import Queries, sql_text
from wait_registry.postgres.query_file import KINDS, load_query, parse_query, query_names
from wait_registry.postgres.schema import schema_migrations


@pytest.mark.parametrize("file", ["sink", "rebuild"])
def test_every_block_has_a_name_and_a_text(file: str) -> None:
    queries = Queries(file)
    assert len(queries.names()) == len(re.findall("^-- name:", sql_text(f"{file}.sql"), re.MULTILINE))
    assert all(queries[name].rstrip().endswith(";") for name in queries.names())


def test_the_schema_is_the_first_migration() -> None:
    known = schema_migrations()
    assert [migration.version for migration in known] == list(range(1, len(known) + 1))
    assert (known[0].file, known[0].name) == ("sql/schema.sql", "schema")


def test_migrations_are_read_in_order_and_without_gaps(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    assert migrations(folder, first=2) == ()
    folder.mkdir()
    for name in ("0003_later.sql", "0002_earlier.sql", "README.md"):
        (folder / name).write_text(f"-- {name}")
    earlier, later = migrations(folder, first=2)
    assert (earlier.version, earlier.name, earlier.file) == (2, "earlier", "sql/migrations/0002_earlier.sql")
    assert (later.version, later.text) == (3, "-- 0003_later.sql")
    (folder / "0002_earlier.sql").unlink()
    with pytest.raises(ValueError, match=r"sql/migrations is not numbered 2, 3, 4"):
        migrations(folder, first=2)


_TEXT = """\
-- What is it?
-- What to do: look
-- again.
-- Kind: the system
\\if :{?minutes} \\else \\set minutes 10 \\endif

select '100%'::text, cast(:'minutes' as int), :'topic', :'topic'
"""


def test_a_file_is_taken_apart() -> None:
    query = parse_query("it", _TEXT)
    assert query.question == "What is it?"
    assert query.advice == "What to do: look\nagain."
    assert query.kind == "the system"
    assert query.defaults == {"minutes": "10"}
    assert query.parameters == ("minutes", "topic")
    assert query.numbers == {"minutes": 2**31 - 1}
    assert query.sql == "select '100%%'::text, cast(%(minutes)s as int), %(topic)s, %(topic)s"


@pytest.mark.parametrize("name", query_names())
def test_every_query_says_which_question_it_answers_and_what_to_do(name: str) -> None:
    query = load_query(name)
    assert "?" in query.question
    assert query.advice.startswith("What to do: ")
    assert query.kind in KINDS
    assert query.sql.endswith(";")
    assert query.sql.count(";") == 1
    assert set(query.defaults) <= set(query.parameters)
    text = (files("wait_registry_sql") / "queries" / f"{name}.sql").read_text("utf-8")
    assert text.count("\n\\") == len(query.defaults), "defaults are the only lines for psql"
