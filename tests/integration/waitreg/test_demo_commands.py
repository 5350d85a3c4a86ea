"""`waitreg load`, `waitreg downstream` and `waitreg demo` as processes: arguments, signals and exit codes."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.conftest import SettingsFactory
from tests.support.kafka_io import read_all
from tests.support.naming import Names
from tests.support.processes import below
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from waitreg.local.environment import as_environment


def test_ctrl_c_ends_a_load_with_what_was_published(
    settings_for: SettingsFactory, topics: Topics, names: Names, tmp_path: Path
) -> None:
    topic = topics.create(names("input"), 3)
    environment = {**os.environ, **as_environment(settings_for())}
    command = [sys.executable, "-m", "waitreg", "load", "--topic", topic, "--records", "0", "--rate", "50"]
    with subprocess.Popen(
        [*command, "--shape", "tiny"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as load:
        try:
            wait_until(lambda: len(read_all(topics.bootstrap, topic)) >= 10, what="the first records", deadline_s=60)
            load.send_signal(signal.SIGINT)
            said, _ = load.communicate(timeout=60)
        finally:
            load.kill()
    assert load.returncode == 0
    assert said.endswith("and stopped, as asked\n")
    assert int(said.split()[1]) == len(topics.read(topic))


def test_ctrl_c_ends_the_demo_with_all_its_processes(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "waitreg", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    with process.stdout:
        shown = "".join(itertools.takewhile(lambda one: "Starting the sink and the sweeper" not in one, process.stdout))
        children = below(process.pid)
        assert {"java", "postgres"} <= {name for name, _ in children}, shown
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.wait(timeout=60) == 130, rest
    _, alive = psutil.wait_procs([child for _, child in children], timeout=30)
    assert not alive
