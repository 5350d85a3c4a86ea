"""P8: what a sweeper refuses, it refuses at once: Spark, which takes ten seconds to start, is not asked first."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.service import SweeperService
from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.local.ports import free_ports


def test_missing_topics_and_a_missing_schema_are_told_although_spark_could_not_be_started(
    settings_for: SettingsFactory, topics: Topics, database: Database, tmp_path: Path
) -> None:
    settings = settings_for({"spark.jars_dir": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="waitreg db migrate"):
        SweeperService(settings).run()
    database.install(settings)
    with pytest.raises(ConfigurationError, match="waitreg topics create"):
        SweeperService(settings).run()


def test_servers_that_are_away_refuse_nothing(settings_for: SettingsFactory, tmp_path: Path) -> None:
    postgres, kafka = free_ports(2)
    nobody = {
        "postgres.url": f"postgresql://127.0.0.1:{postgres}/postgres",
        "kafka.bootstrap_servers": f"127.0.0.1:{kafka}",
        "kafka.request_timeout_s": 1,
        "spark.jars_dir": str(tmp_path),
    }
    with pytest.raises(ConfigurationError, match=r"the jar .* is missing"):
        SweeperService(settings_for(nobody)).run()
