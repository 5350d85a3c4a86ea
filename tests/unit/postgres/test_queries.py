"""SQL is found by name in files that belong to the distribution."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wait_registry.postgres.migrations import migrations
from wait_registry.postgres.queries import Queries, sql_text
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
