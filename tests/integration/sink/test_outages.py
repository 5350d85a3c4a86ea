"""P4, P6, P8: outages and time limits are waited out, a dead JVM ends the sink; afterwards the tables are exact."""

from __future__ import annotations

import psutil
import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, tombstone, wait_record
from tests.integration.sweeper.scenario import with_server_default
from tests.integration.sweeper.test_sweeper import ASKS_FOR_LONGER, LIMIT_S
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.settings import settings_against
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import wait_until


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
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows")

    own_stack.postgres.kill()
    log.write(*waits[50:], *[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids) if at % 3])
    wait_until(lambda: not telemetry.ready().ok, 60, "the sink's not being ready")
    own_stack.postgres.start()
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows after the outage")
    sink.wait_ready()

    own_stack.broker.stop()
    wait_until(lambda: not telemetry.ready().ok, 60, "the sink's not being ready without the broker")
    own_stack.broker.start()
    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids) if at % 3 == 0])
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows after the broker's outage")
    assert log.rows == {}
    sink.wait_ready().stop()
    assert sink.error is None
    doubled = database.rows(settings, "select count(*) from late_outcome")
    assert doubled == [(0,)], "no tombstone was applied twice"


@pytest.mark.guarantee("P8.15")
@pytest.mark.fault("F56")
def test_it_ends_loudly_and_the_next_start_continues(
    prepared: SettingsFactory, topics: Topics, database: Database, services: Services, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2, "sink.restart_backoff_max_s": 1})
    log, ids = WaitTopic(topics, settings.wait.topic), [new_id() for _ in range(8)]
    log.write(*[wait_record(wait_id, at % 4) for at, wait_id in enumerate(ids)])
    service = services.start("sink", settings).wait_ready()
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the rows")

    [java] = [child for child in psutil.Process(service.pid).children() if child.name() == "java"]
    java.kill()
    assert service.wait() == 1
    assert "Spark's JVM has ended" in service.log.read_text()

    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids[:5])], wait_record(new_id(), 1))
    assert start_sink(settings, once=True).wait_ended() is None
    assert rows_of(database, settings) == log.rows
    assert database.rows(settings, "select * from late_outcome") == [], "nothing was read twice"


@pytest.mark.guarantee("P4.10")
@pytest.mark.timeout(300)
def test_a_batch_that_takes_longer_than_the_roles_limit_is_waited_for(
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    start_sink: StartSink,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2})
    log = WaitTopic(topics, settings.wait.topic)
    log.write(wait_record(new_id(), 0))
    with psycopg.connect(database.url) as slow:
        slow.execute(f"lock table {settings.postgres.schema_name}.wait in share mode")
        pid = slow.info.backend_pid
        sink = start_sink(with_server_default(settings, f"statement_timeout={LIMIT_S}s"), once=True)
        wait_until(
            lambda: (
                sink.ended
                or "the sink failed" in caplog.text
                or database.rows(settings, ASKS_FOR_LONGER, pid, 1.5 * LIMIT_S)
            ),
            120,
            "a batch that outlasts the limit",
        )
        slow.rollback()
    assert sink.wait_ended() is None
    assert rows_of(database, settings) == log.rows
    assert "the sink failed" not in caplog.text
