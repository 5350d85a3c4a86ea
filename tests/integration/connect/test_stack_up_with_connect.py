"""`waitreg stack up --connect`: a Kafka Connect worker to try the configurations on."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

from tests.support.own_postgres import reachable
from tests.support.processes import below

OURS = {
    "io.waitreg.connect.WaitRecordConverter",
    "io.waitreg.connect.WaitRecordToRow",
    "io.waitreg.connect.DeadLetterToRow",
    "io.waitreg.connect.JsonHeadersToKafkaHeaders",
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "io.debezium.connector.postgresql.PostgresConnector",
}


@contextmanager
def stack_up(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run `waitreg stack up --connect`; yield its process and the variables that it printed."""
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "wait_registry", "stack", "up", "--connect", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
        )
        try:
            yield process, exports_of(process)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_the_worker_of_the_stack_has_the_plugin_and_the_connectors(connect_plugin: Path, tmp_path: Path) -> None:
    with stack_up(tmp_path) as (process, exports):
        plugins = get(f"{exports['WAITREG_CONNECT__URL']}/connector-plugins?connectorsOnly=false")
        with psycopg.connect(exports["WAITREG_POSTGRES__URL"]) as connection:
            wal_level = connection.execute("show wal_level").fetchone()
    assert process.returncode == os.EX_OK
    assert {plugin["class"] for plugin in plugins} >= OURS
    assert wal_level == ("logical",), "Debezium's source reads the outbox by logical decoding"


def test_with_a_data_folder_the_worker_keeps_its_port_and_its_data(connect_plugin: Path, tmp_path: Path) -> None:
    data_dir = reachable(tmp_path) / "stack"
    with stack_up(tmp_path, "--data-dir", str(data_dir)) as (process, exports):
        kept = json.loads((data_dir / "ports.json").read_text())
        worker(process.pid).kill()
        assert process.wait(60) == 1
    assert exports["WAITREG_CONNECT__URL"].rpartition(":")[2] == str(kept[3])
    errors = (tmp_path / "errors").read_text()
    assert "the embedded Kafka Connect worker ended with status 137" in errors
    assert (data_dir / "connect" / "server.log").is_file()


def worker(pid: int) -> psutil.Process:
    (found,) = (
        child
        for name, child in below(pid)
        if name == "java" and any("ConnectDistributed" in word for word in child.cmdline())
    )
    return found


def exports_of(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    found: dict[str, str] = {}
    for line in process.stdout:
        if line == "# Ctrl-C ends it\n":
            return found
        name, _, value = line.removeprefix("export ").strip().partition("=")
        found[name] = "".join(shlex.split(value))
    raise AssertionError(f"it ended after {found}")


def get(url: str) -> list[dict[str, str]]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: list[dict[str, str]] = json.load(answer)
    return found
