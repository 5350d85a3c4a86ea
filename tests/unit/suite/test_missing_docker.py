"""Tests that were to run in containers and found no Docker engine are skipped, and the last line says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NEEDS_A_BROKER = "tests/integration/kafka/test_topic_identity_and_ends.py"


@pytest.mark.parametrize(("on_ci", "status"), [({}, 0), ({"CI": "true"}, 1)])
def test_the_last_line_says_what_was_not_tested_and_why(on_ci: dict[str, str], status: int, tmp_path: Path) -> None:
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path / 'docker.sock'}"}
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--stack=containers", NEEDS_A_BROKER]
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, **nowhere, **on_ci}, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.match(
        r"--stack=containers: NOT TESTED: all [1-9]\d* tests that need Kafka or Postgres were skipped, "
        "no Docker engine answers: ",
        last,
    ), last
