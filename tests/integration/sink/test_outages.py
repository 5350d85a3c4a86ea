"""P4, P6, P8: outages and time limits are waited out, a dead JVM ends the sink; afterwards the tables are exact."""

from __future__ import annotations

import psutil
import psycopg
import pytest

from tests.integration.sink.conftest import SinkScenario, SinkScenarioFactory, StartSink
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.integration.sweeper.scenario import with_server_default
from tests.integration.sweeper.test_sweeper import ASKS_FOR_LONGER, LIMIT_S
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.settings import settings_against
from tests.support.stack import OwnStack
from tests.support.taken_port import take_first_result
from tests.support.topics import Topics
from tests.support.waiting import wait_until


@pytest.mark.guarantee("P6.8")
@pytest.mark.fault("F85")
def test_outages_of_postgres_and_kafka_are_waited_out(own_stack: OwnStack, names: Names, start_sink: StartSink) -> None:
    overrides = {
        "sink.poll_interval_s": 0.2,
        "sink.restart_backoff_max_s": 1,
        "sink.max_batch_records": 40,
        "kafka.request_timeout_s": 3,
        "sink.idle_progress_s": 1,
    }
    settings = settings_against(own_stack.bootstrap_servers, own_stack.postgres_url, names, overrides)
    at = SinkScenario(settings, Topics(own_stack.bootstrap_servers), Database(own_stack.postgres_url), start_sink)
    at.topics.create_own(settings)
    at.database.install(settings)
    ids = [new_id() for _ in range(200)]
    waits = [wait_record(wait_id, number % 4) for number, wait_id in enumerate(ids)]
    at.log.write(*waits[:50])

    own_stack.postgres.stop()
    sink = at.start()
    telemetry = sink.service.telemetry
    wait_until(lambda: "PostgresUnavailable" in "".join(telemetry.ready().reasons), 60, "the sink's complaint")
    own_stack.postgres.start()
    sink.wait_ready()
    at.wait_exact()

    own_stack.postgres.kill()
    at.log.write(*waits[50:], *[tombstone(wait_id, number % 4) for number, wait_id in enumerate(ids) if number % 3])
    wait_until(lambda: not telemetry.ready().ok, 60, "the sink's not being ready")
    own_stack.postgres.start()
    at.wait_exact("after the outage")
    sink.wait_ready()

    own_stack.broker.stop()
    wait_until(lambda: not telemetry.ready().ok, 60, "the sink's not being ready without the broker")
    own_stack.broker.start()
    at.log.write(*[tombstone(wait_id, number % 4) for number, wait_id in enumerate(ids) if number % 3 == 0])
    at.wait_exact("after the broker's outage")
    assert at.log.rows == {}
    sink.wait_ready().stop()
    assert sink.error is None
    assert at.rows("select count(*) from late_outcome") == [(0,)], "no tombstone was applied twice"


@pytest.mark.guarantee("P6.8")
@pytest.mark.fault("F94")
def test_a_restored_postgres_is_caught_up_exactly(sink_scenario: SinkScenarioFactory) -> None:
    at, ids = sink_scenario(), [new_id() for _ in range(12)]
    at.log.write(*[wait_record(wait_id, number % 4) for number, wait_id in enumerate(ids)])
    at.drain()
    at.execute("create table kept_wait as table wait; create table kept_progress as table sink_progress")
    at.log.write(*[tombstone(wait_id, number % 4) for number, wait_id in enumerate(ids[:6])], wait_record(new_id(), 1))
    at.drain()
    assert at.is_exact()
    at.execute(
        "truncate wait, sink_progress; insert into wait table kept_wait; insert into sink_progress table kept_progress"
    )
    at.log.write(tombstone(ids[7], 3))
    # Nothing but Postgres says where to begin.
    at.drain()
    assert at.is_exact()


@pytest.mark.guarantee("P8.15")
@pytest.mark.fault("F56")
def test_a_dead_jvm_ends_a_sink_and_the_next_continues(sink_scenario: SinkScenarioFactory, services: Services) -> None:
    at, ids = sink_scenario(), [new_id() for _ in range(8)]
    at.log.write(*[wait_record(wait_id, number % 4) for number, wait_id in enumerate(ids)])
    service = services.start("sink", at.settings).wait_ready()
    at.wait_exact()
    [java] = [child for child in psutil.Process(service.pid).children() if child.name() == "java"]
    java.kill()
    assert service.wait() == 1
    assert "Spark's JVM has ended" in service.log.read_text()
    at.log.write(*[tombstone(wait_id, number % 4) for number, wait_id in enumerate(ids[:5])], wait_record(new_id(), 1))
    at.drain()
    assert at.is_exact()
    assert at.rows("select * from late_outcome") == [], "nothing was read twice"


@pytest.mark.fault("F65")
def test_a_read_whose_rows_another_process_hinders_is_read_again(
    sink_scenario: SinkScenarioFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at = sink_scenario()
    at.log.write(*[wait_record(new_id(), number % 4) for number in range(12)])
    take_first_result(monkeypatch)
    at.drain()
    assert at.is_exact()
    assert "CANNOT_OPEN_SOCKET" in caplog.text


@pytest.mark.guarantee("P4.10")
@pytest.mark.timeout(300)
def test_a_batch_that_takes_longer_than_the_roles_limit_is_waited_for(
    sink_scenario: SinkScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = sink_scenario()
    at.log.write(wait_record(new_id(), 0))
    with psycopg.connect(at.database.url) as slow:
        slow.execute(f"lock table {at.settings.postgres.schema_name}.wait in share mode")
        pid = slow.info.backend_pid
        sink = at.start_sink(with_server_default(at.settings, f"statement_timeout={LIMIT_S}s"), once=True)
        wait_until(
            lambda: sink.ended or "the sink failed" in caplog.text or at.rows(ASKS_FOR_LONGER, pid, 1.5 * LIMIT_S),
            120,
            "a batch that outlasts the limit",
        )
        slow.rollback()
    assert sink.wait_ended() is None
    assert at.is_exact()
    assert "the sink failed" not in caplog.text
