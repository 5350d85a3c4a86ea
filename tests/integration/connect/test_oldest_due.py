"""With a source, `waitreg connect watch` measures the oldest due registration, and survives an outage of Postgres."""

from __future__ import annotations

import json
import socket
from typing import Any

from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.processes import Services
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings
from waitreg.connect.watch import QUERIES, oldest_due
from waitreg.local.ports import free_ports

ROWS = 200_000
DUE = """
insert into wait (wait_expiration_uuid, original_topic, original_headers, wait_expiration_time, wait_topic,
                  wait_partition, wait_offset)
select lpad(n::text, 36, '0'), 'orders', '[]', now() - make_interval(secs => %s), %s, n %% 4, n
from generate_series(%s::int, %s::int) as n
returning 1
"""
EXPORTED = """
insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid, wait_partition, wait_offset)
select 'letters', 0, wait_offset, 'expired', wait_expiration_uuid, wait_partition, wait_offset from wait
where wait_topic = %s and wait_offset between %s and %s
returning 1
"""
CLOSED = "delete from wait where wait_topic = %s returning 1"


def ages(settings: Settings) -> dict[str, int]:
    """Return what a look finds, in whole hundreds of seconds."""
    ages_s, trouble = oldest_due(settings)
    assert trouble is None, trouble
    return {lacks: round(age_s / 100) for lacks, age_s in ages_s.items()}


def test_exported_rows_lack_a_tombstone_closed_ones_nothing(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for({"wait.skew_allowance_s": 100})
    database.install(settings)
    topic = settings.wait.topic
    database.rows(settings, DUE, 50, topic, 1, 4)  # expired, and within the allowance
    database.rows(settings, DUE, 900_000, "another.wait", 5, 8)
    assert ages(settings) == {"tombstone": 0, "dead_letter": 0}
    database.rows(settings, DUE, 900, topic, 11, 12)
    database.rows(settings, DUE, 500, topic, 13, 14)
    assert ages(settings) == {"tombstone": 8, "dead_letter": 8}, "since they were due"
    database.rows(settings, EXPORTED, topic, 11, 12)
    assert ages(settings) == {"tombstone": 8, "dead_letter": 4}
    database.rows(settings, EXPORTED, topic, 13, 14)
    assert ages(settings) == {"tombstone": 8, "dead_letter": 0}
    database.rows(settings, CLOSED, topic)
    assert ages(settings) == {"tombstone": 0, "dead_letter": 0}


def test_the_queries_probe_an_index_of_a_large_table(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for()
    database.install(settings)
    database.rows(settings, DUE, -3600, settings.wait.topic, 1, ROWS)
    database.rows(settings, DUE, 3600, settings.wait.topic, ROWS + 1, ROWS + 100)
    database.rows(settings, EXPORTED, settings.wait.topic, 1_000, ROWS + 90)
    question = {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s}
    with database.connect(settings) as connection:
        connection.execute("vacuum analyze wait, dead_letter")
        explain = f"explain (analyze, buffers, format json) {QUERIES['oldest_due']}".encode()
        for unexported in (False, True):
            row = connection.execute(explain, {**question, "unexported": unexported})
            [[[top]]] = row.fetchall()
            plan: dict[str, Any] = top["Plan"]
            assert "Seq Scan" not in json.dumps(plan), unexported
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 1_000, unexported


def test_without_postgres_and_worker_the_watch_continues(settings_for: SettingsFactory, services: Services) -> None:
    # It takes connections and never says a word.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/nothing"
        settings = settings_for(
            {
                "connect.url": f"http://127.0.0.1:{free_ports(1)[0]}",
                "connect.watch_interval_s": 0.2,
                "sweeper.kind": "connect",
                "postgres.url": url,
                "postgres.connect_timeout_s": 4,
            }
        )
        watch = services.start("connect", settings, "watch")
        wait_until(lambda: "no Kafka Connect worker answers" in watch.get("/health/ready")[1], what="looks at workers")
        wait_until(lambda: watch.metrics().get("waitreg_connect_postgres_up") == 0, what="the metric of the outage")
        metrics = watch.metrics()
        assert (metrics["waitreg_connect_exports"], metrics["waitreg_connect_keeps_tables"]) == (1, 0)
        assert (watch.get("/health/live")[0], metrics["waitreg_connect_up"]) == (200, 0), "alive, and without a worker"
        assert not [name for name in metrics if "oldest_due" in name or "connect_running" in name], "nothing is known"
        assert watch.terminate() == 0
