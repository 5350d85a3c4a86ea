"""P6, P8: Postgres or the broker away, at the start or in between, is waited out; afterwards the view is exact."""

from __future__ import annotations

import pytest

from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings


def view_of(database: Database, settings: Settings) -> dict[str, tuple[int, int]]:
    rows = database.rows(settings, "select wait_expiration_uuid, wait_partition, wait_offset from wait")
    return {wait_id: (partition, offset) for wait_id, partition, offset in rows}


@pytest.mark.guarantee("P6.8")
@pytest.mark.fault("F85")
def test_postgres_away_at_the_start_and_killed_in_between_and_the_broker_gone_for_a_while(
    own_stack: OwnStack, names: Names, start_sink: StartSink
) -> None:
    overrides = {
        "sink.poll_interval_s": 0.2,
        "sink.restart_backoff_max_s": 1,
        "sink.max_batch_records": 40,
        "kafka.request_timeout_s": 3,
        "sink.idle_progress_s": 1,
    }
    settings = settings_against(own_stack.bootstrap_servers, own_stack.postgres_url, names, overrides)
    topics, database = Topics(own_stack.bootstrap_servers), Database(own_stack.postgres_url)
    topics.create_own(settings)
    database.install(settings)
    log, ids = WaitTopic(topics, settings.wait.topic), [new_id() for _ in range(200)]
    waits = [wait_record(wait_id, at % 4) for at, wait_id in enumerate(ids)]
    log.write(*waits[:50])

    own_stack.postgres.stop()
    sink = start_sink(settings)
    telemetry = sink.service.telemetry
    wait_until(lambda: "PostgresUnavailable" in "".join(telemetry.ready().reasons), 60, "the sink's complaint")
    own_stack.postgres.start()
    sink.wait_ready()
    wait_until(lambda: view_of(database, settings) == log.view, 60, "the view")

    own_stack.postgres.kill()
    log.write(*waits[50:], *[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids) if at % 3])
    wait_until(lambda: not telemetry.ready().ok, 60, "the sink's not being ready")
    own_stack.postgres.start()
    wait_until(lambda: view_of(database, settings) == log.view, 60, "the view after the outage")
    sink.wait_ready()

    own_stack.broker.stop()
    wait_until(lambda: not telemetry.ready().ok, 60, "the sink's not being ready without the broker")
    own_stack.broker.start()
    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids) if at % 3 == 0])
    wait_until(lambda: view_of(database, settings) == log.view, 60, "the view after the broker's outage")
    assert log.view == {}
    sink.wait_ready().stop()
    assert sink.error is None
    doubled = database.rows(settings, "select count(*) from late_outcome")
    assert doubled == [(0,)], "no tombstone was applied twice"
