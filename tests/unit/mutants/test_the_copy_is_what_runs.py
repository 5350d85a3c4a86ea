"""A fault planted in a scratch copy is the code that runs there: modules, SQL and subprocesses alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.scratch_copy import ROOT, environment_of, scratch_copy

ASKED = """
import json, subprocess, sys
import processor, sink, sweeper, tests.mutants.mutant, wait_registry, wait_registry_jvm, wait_registry_sql
from wait_registry.postgres.queries import Queries
modules = [processor, sink, sweeper, tests.mutants.mutant, wait_registry, wait_registry_jvm, wait_registry_sql]
child = subprocess.run([sys.executable, "-c", "import sweeper; print(sweeper.__file__)"], cwd="/", capture_output=True)
print(json.dumps([[module.__file__ for module in modules], child.stdout.decode().strip(), Queries("sweeper")["clock"]]))
"""
PLANTED = Mutant("", "P3", "", "sql/sweeper.sql", "select clock_timestamp();", "select 'planted';", "")


def test_modules_sql_and_child_processes_come_from_the_copy_and_the_checkout_stays_as_it_is() -> None:
    before = (ROOT / PLANTED.file).read_bytes()
    with scratch_copy() as copy:
        assert PLANTED.plant(copy) is None
        assert PLANTED.plant(copy) is not None, "the text isn't there any more"
        run = subprocess.run(
            [sys.executable, "-c", ASKED],
            cwd=copy,
            env=environment_of(copy),
            capture_output=True,
            check=True,
            text=True,
        )
        files, child, query = json.loads(run.stdout)
        assert [file for file in (*files, child) if not Path(file).is_relative_to(copy)] == []
        assert query == "select 'planted';"
    assert not copy.exists()
    assert (ROOT / PLANTED.file).read_bytes() == before
