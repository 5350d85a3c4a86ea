"""What a sink refuses, it refuses at once: Spark, which takes ten seconds to start, is not asked first."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink.service import SinkService
from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError


def test_where_a_connect_sink_keeps_the_view_ours_does_not_start(settings_for: SettingsFactory) -> None:
    with pytest.raises(ConfigurationError, match=r"sink\.kind is connect"):
        SinkService(settings_for({"sink.kind": "connect"})).run()


def test_missing_topics_and_a_missing_schema_are_told_although_spark_could_not_be_started(
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
