"""Doctor names what is broken, with a fix, and nothing else; it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.conftest import SettingsFactory
from tests.integration.doctor.findings import look
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.topics import Topics
from wait_registry.diagnosis import Severity
from wait_registry.records.topics import redelivery_topic


@pytest.fixture
def sound(names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Settings with a handler of this test's own, whose module is in the current directory."""
    (tmp_path / f"{names.prefix}_shop.py").write_text("async def handle(record):\n    return None\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return {"processor.handler": f"{names.prefix}_shop:handle"}


def test_a_sound_installation_has_no_errors_and_is_unchanged(
    prepared: SettingsFactory, topics: Topics, database: Database, sound: dict[str, str]
) -> None:
    settings = prepared(sound)
    topics.produce(settings.processor.topics[0], [b"order"])
    found = look(settings)
    assert found.broken == []
    assert all(line.fix for line in found.lines if line.severity is Severity.WARNING)
    assert database.rows(settings, "select count(*) from sink_progress") == [(0,)]
    groups = AdminClient({"bootstrap.servers": topics.bootstrap}).list_consumer_groups().result(30).valid
    assert settings.processor.group not in {group.group_id for group in groups}
    assert topics.read(settings.wait.topic) == []


@pytest.mark.parametrize(
    ("name", "value", "id", "said"),
    [
        ("processor.handler", "{module}:handel", "handler", "handel"),
        ("processor.handler", "{module}p:handle", "handler", "p'"),
        ("processor.ttl_s", "20", "settings.processor", "ttl_s"),
        ("spark.jars_dir", "/nowhere", "jars", "/nowhere"),
        ("telemetry.host", "203.0.113.1", "telemetry.port", "203.0.113.1"),
        ("postgres.schema", "nowhere", "postgres.schema", "waitreg db migrate"),
    ],
)
def test_a_wrong_setting_is_the_only_error(
    prepared: SettingsFactory,
    settings_for: SettingsFactory,
    sound: dict[str, str],
    name: str,
    value: str,
    id: str,
    said: str,
) -> None:
    prepared(sound)
    found = look(settings_for({**sound, name: value.format(module=sound["processor.handler"].partition(":")[0])}))
    assert found.broken == [id]
    assert said in found.one(id).message
    assert found.one(id).fix


@pytest.mark.parametrize(
    ("policy", "severity", "offsets"),
    [("redeliver", Severity.ERROR, Severity.SKIPPED), ("dlq", Severity.WARNING, Severity.OK)],
)
def test_missing_redelivery_topics_are_named(
    policy: str, severity: Severity, offsets: Severity, prepared: SettingsFactory, topics: Topics, sound: dict[str, str]
) -> None:
    settings = prepared({**sound, "processor.expiry_policy": policy})
    topic = redelivery_topic(settings.processor.topics[0], settings.processor.group)
    topics.delete(topic)
    found = look(settings, "processor")
    missing = found.one("topic.redelivery.missing")
    assert (missing.subject, missing.severity) == (f"topic {topic}", severity)
    assert found.broken == [missing.id] * (severity is Severity.ERROR)
    assert found.standing("group.offsets") is offsets


@pytest.mark.parametrize(
    ("topic", "group", "said"), [("old", "", "name {topic} in"), ("", "old", "processor.group={group}")]
)
def test_records_in_topics_that_the_group_left_are_named(
    topic: str, group: str, said: str, prepared: SettingsFactory, topics: Topics, names: Names, sound: dict[str, str]
) -> None:
    settings = prepared(sound)
    topic, group = (topic and names(topic)) or settings.processor.topics[0], group or settings.processor.group
    left = topics.create(redelivery_topic(topic, group), 2)
    assert look(settings, "processor").standing("group.left") is Severity.OK
    topics.produce(left, [b"order"])
    found = look(settings, "processor").one("group.left")
    assert found.severity is Severity.WARNING
    assert f"{left} has 1 offsets to its end" in found.message
    assert said.format(topic=topic, group=group) in found.fix


def test_without_postgres_the_checks_of_kafka_still_run(prepared: SettingsFactory, sound: dict[str, str]) -> None:
    settings = prepared(sound)
    url = "postgresql://me:hunter2@127.0.0.1:1/registry"
    away = settings.model_copy(update={"postgres": settings.postgres.model_validate({"url": url})})
    found = look(away)
    assert found.broken == ["postgres.reachable"]
    assert found.standing("postgres.schema") is Severity.SKIPPED
    assert found.standing("tables.freshness") is Severity.SKIPPED
    assert found.standing("group.offsets") is Severity.OK
    assert "hunter2" not in "".join(map(str, found.lines))
    on_a_processor_s_host = look(away, "processor")
    assert on_a_processor_s_host.broken == []
    assert not any(
        line.id.startswith(("postgres", "tables", "sweep", "version.java")) for line in on_a_processor_s_host.lines
    )


@pytest.mark.parametrize(("delay", "severity"), [("10s", Severity.OK), ("30d", Severity.WARNING)])
def test_a_delay_beyond_the_brokers_memory_of_offsets_is_said(
    prepared: SettingsFactory, sound: dict[str, str], delay: str, severity: Severity
) -> None:
    found = look(prepared({**sound, "processor.retry.delays": (delay,)}), "processor")
    assert found.broken == []
    assert found.one("group.offsets.retention").severity is severity
