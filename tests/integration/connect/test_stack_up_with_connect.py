"""`waitreg stack up --connect`: a Kafka Connect worker to try the configurations on."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import psycopg

OURS = {
    "io.waitreg.connect.WaitRecordConverter",
    "io.waitreg.connect.WaitRecordToRow",
    "io.waitreg.connect.DeadLetterToRow",
    "io.waitreg.connect.JsonHeadersToKafkaHeaders",
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "io.debezium.connector.postgresql.PostgresConnector",
}


def test_the_printed_worker_has_the_plugin_and_the_connectors_and_ends_with_the_stack(
    connect_plugin: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "waitreg", "stack", "up", "--connect"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None
    try:
        exports = dict(exported(line) for line in iter(process.stdout.readline, "# Ctrl-C ends it\n"))
        plugins = get(f"{exports['WAITREG_CONNECT__URL']}/connector-plugins?connectorsOnly=false")
        with psycopg.connect(exports["WAITREG_POSTGRES__URL"]) as connection:
            wal_level = connection.execute("show wal_level").fetchone()
    finally:
        process.terminate()
        process.communicate(timeout=60)

    assert process.returncode == os.EX_OK
    assert {plugin["class"] for plugin in plugins} >= OURS
    assert wal_level == ("logical",), "Debezium's source reads the outbox by logical decoding"


def exported(line: str) -> tuple[str, str]:
    name, _, value = line.removeprefix("export ").strip().partition("=")
    return name, "".join(shlex.split(value))


def get(url: str) -> list[dict[str, str]]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: list[dict[str, str]] = json.load(answer)
    return found
