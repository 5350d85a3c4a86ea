"""P8: what a sink refuses it refuses before Spark starts, and it is ready once batches are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink.service import SinkService
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.integration.sink.wait_topic import new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError


def test_missing_topics_and_schema_are_reported_before_spark_starts(
    settings_for: SettingsFactory, topics: Topics, database: Database, tmp_path: Path
) -> None:
    settings = settings_for({"spark.jars_dir": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="waitreg db migrate"):
        SinkService(settings).run()
    database.install(settings)
    with pytest.raises(ConfigurationError, match="waitreg topics create"):
        SinkService(settings).run()
    topics.create_own(settings)
    with pytest.raises(ConfigurationError, match=r"\.jar|jars"):
        SinkService(settings).run()


@pytest.mark.guarantee("P8.18")
def test_a_sink_is_ready_once_its_first_batch_is_written(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario()
    at.log.write(wait_record(new_id(), 0))
    with at.database.connect(at.settings) as other, other.transaction():
        other.execute("lock table wait in share mode")
        sink = at.start()
        blocked = "select pid from pg_locks where relation = 'wait'::regclass and not granted"
        wait_until(lambda: at.rows(blocked), 90, "a first batch that waits for the lock")
        reasons = sink.service.telemetry.ready().reasons
        assert "wait stream: its first batch since the start isn't written yet" in reasons
    sink.wait_ready()
    assert at.is_exact()
