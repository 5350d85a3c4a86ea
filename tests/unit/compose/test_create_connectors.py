"""The script of the compose file that creates connectors with the REST API."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docker_files import ROOT
from tests.support.http_service import Answer, Call, HttpService

SCRIPT = ROOT / "deploy" / "compose" / "create_connectors.py"
# In place of the command: it refuses to check "refused", and prints a configuration for any other name.
COMMAND = """#!/bin/sh
[ "$2 $3" = "check refused" ] && exit 2
[ "$2" = print ] && echo "{\\"name\\": \\"named.$3\\", \\"topics\\": \\"a\\"}"
exit 0
"""


def create(folder: Path, url: str, *connectors: str) -> subprocess.CompletedProcess[str]:
    (folder / "waitreg").write_text(COMMAND)
    (folder / "waitreg").chmod(0o755)
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *connectors],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "WAITREG_CONNECT__URL": url},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("busy", [Answer(409), Answer(500), Answer(404), Answer(cut=True)], ids=repr)
def test_connectors_are_created_in_order_by_a_busy_or_restarting_worker(tmp_path: Path, busy: Answer) -> None:
    answers = iter([busy, Answer(201), Answer(200)])
    with HttpService(lambda _: next(answers)) as worker:
        done = create(tmp_path, worker.address, "sink", "source")
        assert done.returncode == 0, done.stderr
        asked = [(call.method, call.path.strip("/")) for call in worker.calls]
    first, second = "connectors/named.sink/config", "connectors/named.source/config"
    assert asked == [("PUT", first), ("PUT", first), ("PUT", second)]
    assert worker.calls[0].json() == {"name": "named.sink", "topics": "a"}


@pytest.mark.parametrize(
    ("connectors", "said"), [(["refused", "source"], ""), (["sink"], "answered 400: no such class")]
)
def test_a_refused_connector_ends_the_script(tmp_path: Path, connectors: list[str], said: str) -> None:
    calls: list[Call] = []

    def refuse(call: Call) -> Answer:
        calls.append(call)
        return Answer(400, b"no such class")

    with HttpService(refuse) as worker:
        done = create(tmp_path, worker.address.rstrip("/"), *connectors)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert len(calls) == bool(said)
