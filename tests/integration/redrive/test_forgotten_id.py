"""A broker that forgets the transactional ID of a job between two chunks keeps no dead letter from being sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.redrive.scenario import Scenario
from tests.support.database import Database
from tests.support.topics import Topics
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.ports import free_ports
from wait_registry.records.operation import State

FORGETFUL = {
    "transactional.id.expiration.ms": "200",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
}


def test_a_job_whose_id_is_forgotten_begins_again_at_the_fence(
    tmp_path: Path, settings_for: SettingsFactory, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    clients, controller = free_ports(2)
    with EmbeddedBroker(tmp_path, (clients, controller), properties=FORGETFUL, temporary=True) as broker:
        settings = settings_for({"kafka.bootstrap_servers": broker.bootstrap_servers})
        topics = Topics(broker.bootstrap_servers)
        topics.create_own(settings)
        database.install(settings)
        at = Scenario(settings, topics, database)
        at.dead_letters(3)
        at.read()
        ended = at.execute(at.request(rate=0.5).job)
        assert (ended.state, dict(ended.counts)) == (State.FINISHED, {"redriven": 3})
        assert sorted(record.value or b"" for record in at.sent()) == [b"value 0", b"value 1", b"value 2"]
    assert "the job waits for" in caplog.text, "no transactional ID was forgotten"
