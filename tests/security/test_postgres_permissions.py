"""deploy/postgres/roles.sql gives each role what its work needs, and each right that is taken away is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.postgres_roles import apply_roles, roles
from tests.support.settings import with_postgres
from wait_registry.postgres.connection import connect
from wait_registry.postgres.query_file import bind, load_query, query_names
from wait_registry.postgres.schema import migrate_schema, require_schema
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings
from waitreg.doctor.postgres import TABLES, permissions

GRANTED = """
select table_name, lower(privilege_type)
from information_schema.role_table_grants
where table_schema = %s and grantee = %s
"""


@pytest.fixture
def logins(database: Database, names: Names) -> Iterator[Mapping[str, str]]:
    """Members of the file's roles."""
    with roles(database.url, names.prefix) as made:
        yield made


@pytest.fixture
def settings(settings_for: SettingsFactory, database: Database, logins: Mapping[str, str], names: Names) -> Settings:
    """Settings whose schema the owner's role has made, and the file has been applied to; those of the owner."""
    made = as_role(settings_for(), database, logins["owner"])
    with connect(made.postgres, autocommit=True) as connection:
        migrate_schema(connection)
    database.drop_at_end(made)
    assert apply_roles(database.url, made.postgres.schema_name, names.prefix) == ""
    return made


def as_role(settings: Settings, database: Database, role: str) -> Settings:
    """Return the settings of another role."""
    return with_postgres(settings, psycopg.conninfo.make_conninfo(database.url, user=role))


def granted(database: Database, settings: Settings, role: str) -> set[tuple[str, str]]:
    return set(database.rows(settings, GRANTED, settings.postgres.schema_name, role))


@pytest.mark.parametrize("service", ["sink", "sweeper"])
def test_a_service_gets_what_doctor_asks_for_and_no_more(
    service: Service, settings: Settings, database: Database, names: Names
) -> None:
    asked = {(table, right) for table, rights in TABLES[service].items() for right in rights}
    assert granted(database, settings, f"{names.prefix}_{service}") == asked


@pytest.mark.parametrize("service", ["sink", "sweeper"])
def test_each_right_that_is_missing_is_the_one_named(
    service: Service, settings: Settings, database: Database, logins: Mapping[str, str], names: Names
) -> None:
    mine, role = as_role(settings, database, logins[service]), f"{names.prefix}_{service}"
    with database.connect(settings) as administrator:
        for table, right in granted(database, settings, role):
            administrator.execute(f"revoke {right} on {table} from {role}".encode())
            [line] = permissions(service, mine)
            assert line.message == f"role {logins[service]} has no permission to {right} on {table}"
            administrator.execute(line.fix.removeprefix("psql: ").encode())


def test_a_reporter_reads_every_query_s_answer_and_changes_nothing(
    settings: Settings, database: Database, logins: Mapping[str, str], names: Names
) -> None:
    reporter = as_role(settings, database, logins["reporter"])
    with connect(reporter.postgres, autocommit=True) as connection:
        require_schema(connection)
        for name in query_names():
            query = load_query(name)
            values = bind(query, {parameter: "1" for parameter in query.parameters if parameter not in query.defaults})
            connection.execute(query.sql.encode(), values)
        for change in ("delete from wait", "insert into sweep (wait_topic) values ('w')", "create table mine (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(change.encode())
    rights = granted(database, settings, f"{names.prefix}_reporter")
    assert {right for _, right in rights} == {"select"}
    assert {"wait_readable", "dead_letter_readable", "record_event"} <= {table for table, _ in rights}


def test_rights_that_the_file_does_not_name_are_revoked(settings: Settings, database: Database, names: Names) -> None:
    sink = f"{names.prefix}_sink"
    before = granted(database, settings, sink)
    database.execute(settings, f"grant truncate on wait to {sink}")
    assert granted(database, settings, sink) != before
    apply_roles(database.url, settings.postgres.schema_name, names.prefix)
    assert granted(database, settings, sink) == before
