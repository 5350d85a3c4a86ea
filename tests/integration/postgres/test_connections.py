"""A connection behaves alike whatever the server's defaults are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from tests.support.stack import Stack
from wait_registry.postgres.connection import connect, lift_time_limits
from wait_registry.settings.postgres import PostgresSettings


def server_with(stack: Stack, **defaults: str) -> PostgresSettings:
    """Return settings for the run's server as if somebody had given it other defaults."""
    options = "%20".join(f"-c%20{name}%3D{value}" for name, value in defaults.items())
    joint = "&" if "?" in stack.postgres_url else "?"
    return PostgresSettings(url=SecretStr(f"{stack.postgres_url}{joint}options={options}"))


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_the_first_and_the_last_time_are_read_whatever_the_server_s_zone(stack: Stack, zone: str) -> None:
    with connect(server_with(stack, TimeZone=zone, DateStyle="SQL"), autocommit=True) as connection:
        question = "select timestamptz '0001-01-01T00:00:00Z', timestamptz '9999-12-31T23:59:59Z'"
        for binary in (False, True):
            row = connection.execute(question, binary=binary).fetchone()
            assert row == (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_long_reader_has_no_time_limit_of_the_server_s(stack: Stack, autocommit: bool) -> None:
    limits = {"statement_timeout": "60000", "idle_in_transaction_session_timeout": "60000"}
    with connect(server_with(stack, **limits), autocommit=autocommit) as connection:
        lift_time_limits(connection)
        connection.rollback()
        for name in limits:
            assert connection.execute("select current_setting(%s)", (name,)).fetchone() == ("0",)
