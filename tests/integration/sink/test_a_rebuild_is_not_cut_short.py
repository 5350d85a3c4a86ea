"""Limits that a role or database has for ordinary work don't end a rebuild, whose transactions are long."""

from __future__ import annotations

from tests.conftest import SettingsFactory
from tests.support.database import Database
from wait_registry.postgres.connection import lift_time_limits


def test_time_limits_of_the_role_do_not_hold_for_a_rebuild(settings_for: SettingsFactory, database: Database) -> None:
    with database.connect(settings_for()) as connection:
        connection.execute("set statement_timeout to '1h'")
        connection.execute("set idle_in_transaction_session_timeout to '1h'")
        lift_time_limits(connection)
        limits = connection.execute(
            "select current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
        ).fetchone()
    assert limits == ("0", "0")
