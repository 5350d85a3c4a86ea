"""P6: a limit that a role or server sets for ordinary statements breaks no batch, however long it takes."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.test_the_view_is_the_logs_truth import view_of
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.integration.sweeper.scenario import with_server_default
from tests.integration.sweeper.test_sweeper import ASKS_FOR_LONGER, LIMIT_S
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until


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
    assert view_of(database, settings) == log.view
    assert "the sink failed" not in caplog.text
