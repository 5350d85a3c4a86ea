"""One schema with a small incident in it, for all who only read it."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunHere
from tests.support.command import Ended
from tests.support.database import own_tables
from tests.support.postgres_roles import psql
from tests.support.stack import Stack
from wait_registry.settings.tree import Settings

Ask = Callable[..., str]
Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def incident(stack: Stack) -> Iterator[Settings]:
    """Settings of the schema that incident.sql has filled."""
    with own_tables(stack) as (settings, connection):
        connection.execute(Path(__file__).with_name("incident.sql").read_bytes())
        yield settings


@pytest.fixture
def run(incident: Settings, run_here: RunHere) -> Run:
    """Run `waitreg` in this process, against the incident."""

    def run(*arguments: str, code: int = 0) -> Ended:
        ended = run_here(incident, *arguments)
        assert ended.code == code, ended.errors
        return ended

    return run


@pytest.fixture
def ask(run: Run) -> Ask:
    """Run `waitreg query` and return what it printed."""
    return lambda name, *arguments: run("query", name, *arguments).output


@pytest.fixture
def ask_psql(incident: Settings) -> Callable[..., list[list[str]]]:
    """Run a query's file in plain psql, and return its CSV as lists."""

    def run(name: str, *parameters: str) -> list[list[str]]:
        file = ROOT / "sql" / "queries" / f"{name}.sql"
        arguments = ["--no-psqlrc", "--csv", "--quiet", "--set=ON_ERROR_STOP=1", f"--file={file}"]
        done = subprocess.run(
            [psql(), incident.postgres.url.get_secret_value(), *arguments, *(f"--set={pair}" for pair in parameters)],
            env={**os.environ, "PGOPTIONS": f"-c search_path={incident.postgres.schema_name}", "PGTZ": "UTC"},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return list(csv.reader(done.stdout.splitlines()))

    return run
