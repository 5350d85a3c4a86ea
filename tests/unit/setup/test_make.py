"""What is given to make reaches the program, and nothing is fetched before the program has looked at it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def commands(*asked: str) -> list[str]:
    """Return the commands that make would run, without whatever the make has set that runs this test."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *asked],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("asked", "program"),
    [
        (("mutants",), "tests.mutants.run"),
        (("mutants", "ARGS=--only a b"), "tests.mutants.run --only a b"),
        (("bench",), "bench --fetch"),
        (("bench", "ROW=2 x"), "bench --fetch --row 2 --row x"),
        (("bench", "ROW=2", "FULL=1", "ARGS=--fresh"), "bench --fetch --row 2 --full --fresh"),
    ],
)
def test_arguments_reach_the_program(asked: tuple[str, ...], program: str) -> None:
    *_, last = commands(*asked)
    assert " ".join(last.split()) == f".venv/bin/python -m {program}"


def test_a_benchmark_fetches_nothing_before_the_program_runs() -> None:
    setup, _ = commands("bench", "ROW=2")
    assert setup == "sh setup/environment.sh"
