"""`waitreg stack up --connect`: a Kafka Connect worker to try the configurations on."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path

import psutil
import psycopg

from tests.integration.test_local_stack import exports_of, stack_up
from tests.support.own_postgres import reachable
from tests.support.processes import below

OURS = {"io.waitreg.connect.WaitRecordToRow", "io.debezium.connector.postgresql.PostgresConnector"}


def test_the_worker_of_the_stack_has_the_plugin_and_the_connectors(connect_plugin: Path, tmp_path: Path) -> None:
    with stack_up(tmp_path, "--connect") as (process, lines):
        exports = exports_of(lines)
        plugins = get(f"{exports['WAITREG_CONNECT__URL']}/connector-plugins?connectorsOnly=false")
        with psycopg.connect(exports["WAITREG_POSTGRES__URL"]) as connection:
            wal_level = connection.execute("show wal_level").fetchone()
    assert process.returncode == os.EX_OK
    assert {plugin["class"] for plugin in plugins} >= OURS
    assert wal_level == ("logical",), "Debezium's source reads the outbox by logical decoding"


def test_with_a_data_folder_the_worker_keeps_its_port_and_its_data(connect_plugin: Path, tmp_path: Path) -> None:
    data_dir = reachable(tmp_path) / "stack"
    with stack_up(tmp_path, "--connect", "--data-dir", str(data_dir)) as (process, lines):
        kept = json.loads((data_dir / "ports.json").read_text())
        worker(process.pid).kill()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert exports_of(lines)["WAITREG_CONNECT__URL"].rpartition(":")[2] == str(kept[3])
    assert "the embedded Kafka Connect worker ended with status 137" in errors
    assert (data_dir / "connect" / "server.log").is_file()


def worker(pid: int) -> psutil.Process:
    (found,) = (
        child
        for name, child in below(pid)
        if name == "java" and any("ConnectDistributed" in word for word in child.cmdline())
    )
    return found


def get(url: str) -> list[dict[str, str]]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: list[dict[str, str]] = json.load(answer)
    return found
