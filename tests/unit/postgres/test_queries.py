"""SQL is found by name in files that belong to the distribution."""

from __future__ import annotations

import re

import pytest

from wait_registry.postgres.migrations import migrations
from wait_registry.postgres.queries import Queries, sql_text


@pytest.mark.parametrize("file", ["sink", "rebuild"])
def test_every_block_has_a_name_and_a_text(file: str) -> None:
    queries = Queries(file)
    assert len(queries.names()) == len(re.findall("^-- name:", sql_text(f"{file}.sql"), re.MULTILINE))
    assert all(queries[name].rstrip().endswith(";") for name in queries.names())


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in migrations()] == list(range(1, len(migrations()) + 1))
    assert len({migration.checksum for migration in migrations()}) == len(migrations())
