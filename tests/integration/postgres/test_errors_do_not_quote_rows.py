"""Postgres quotes the rows that it refuses; what is said of such an error doesn't."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.database import Database
from wait_registry.errors import TransientError
from wait_registry.postgres.error_text import error_text


@pytest.mark.guarantee("P8.16")
def test_of_a_refused_row_the_reason_is_told_and_not_the_row(database: Database) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("create temporary table kept (body bytea, constraint is_small check (length(body) < 3))")
        with pytest.raises(psycopg.errors.CheckViolation, match="Failing row contains") as refused:
            connection.execute("insert into kept values (%s)", (b"payload",))
    said = error_text(refused.value)
    assert said.startswith("CheckViolation: new row for relation")
    assert "is_small" in said and "23514" in said
    assert b"payload".hex() not in said


def test_what_has_no_details_is_told_as_it_is() -> None:
    assert (
        error_text(psycopg.OperationalError("the connection is closed")) == "OperationalError: the connection is closed"
    )
    assert error_text(TransientError("asked in vain")) == "TransientError: asked in vain"
