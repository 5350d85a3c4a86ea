"""This project's connector files: filled in by settings alone, without secrets, with the limits of our services."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from tests.evidence import ROOT
from wait_registry.cli.connect.connector_file import (
    CONNECTORS,
    NAMES,
    Family,
    Role,
    own_files,
    plain_secrets,
    read_connector,
)
from wait_registry.cli.connect.variables import variable
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES
from wait_registry.kafka.topic_specs import topic_specs, wait_spec
from wait_registry.settings.loading import load_settings

FOLDER = ROOT / "connect-configs"
SECRET = "hunter2-s3cr3t"
GIVEN = {
    "postgres.url": f"postgresql://waitreg:{SECRET}@db/shop",
    "sink.kind": "connect",
    "dead_letter.topic": "letters",
    "dead_letter.partitions": 7,
    "dead_letter.retention_ms": 86_400_001,
    "wait.partitions": 5,
    "wait.replication_factor": 4,
    "wait.min_insync_replicas": 3,
    "wait.delete_retention_ms": 86_400_002,
    "wait.segment_ms": 3_600_001,
    "wait.max_compaction_lag_ms": 7_200_001,
    "wait.max_message_bytes": 1_000_003,
}
SETTINGS = load_settings({name: str(value) for name, value in GIVEN.items()}, env={})
read = partial(read_connector, variable=partial(variable, settings=SETTINGS))
SECRET_PROPERTY = re.compile(r"password|secret|jaas|ssl\.key$")
# Sources, and sinks that write what they can't read to a topic.
PRODUCING = sorted([*FOLDER.glob("expired.*.json"), *FOLDER.glob("*.sink.debezium.json")])
# The client library's limits: a megabyte in a buffer of 32.
DEFAULTS = {"max.request.size": "1048576", "buffer.memory": "33554432"}
CREATION = "topic.creation.default."


@pytest.mark.parametrize(
    "file", sorted([*FOLDER.glob("*.json"), *FOLDER.glob("published/*.json")]), ids=lambda file: file.name
)
def test_settings_fill_a_file_of_ours_without_a_secret(file: Path) -> None:
    connector = read(file)
    assert SECRET not in connector.as_json()
    assert list(plain_secrets([connector])) == []
    for key, value in connector.config.items():
        if SECRET_PROPERTY.search(key) and not value.startswith("io."):
            assert re.search(r"\$\{[a-z]+:[^{}]+\}", value), f"{key} is no reference to a ConfigProvider"


@pytest.mark.parametrize("role", get_args(Role))
@pytest.mark.parametrize("family", get_args(Family))
def test_each_family_has_a_file_for_each_published_name(role: Role, family: Family) -> None:
    names = [json.loads(file.read_text("utf-8"))["name"] for file in own_files(role, family)]
    assert names == list(CONNECTORS[role])
    assert len(set(NAMES)) == len(NAMES) == 4, "a name belongs to one role"


@pytest.mark.guarantee("P4.17")
@pytest.mark.parametrize("file", PRODUCING, ids=lambda file: file.name)
def test_a_connector_produces_the_largest_registered_record(file: Path) -> None:
    config = read(file).config
    taken = {name: int(config.get(f"producer.override.{name}", default)) for name, default in DEFAULTS.items()}
    assert taken["max.request.size"] >= PRODUCER_MAX_MESSAGE_BYTES
    assert taken["buffer.memory"] >= taken["max.request.size"], "what doesn't fit into the buffer is refused as well"
    assert len(PRODUCING) == 6


@pytest.mark.parametrize(
    ("connector", "topic"),
    [("expired.source", SETTINGS.dead_letter.topic), ("expired.tombstones", SETTINGS.wait.topic)],
)
def test_a_source_creates_a_topic_as_our_command_does(connector: str, topic: str) -> None:
    config = read(FOLDER / f"{connector}.debezium.json").config
    created = {name.removeprefix(CREATION): value for name, value in config.items() if name.startswith(CREATION)}
    (spec,) = [spec for spec in topic_specs(SETTINGS) if spec.topic == topic]
    sizes = {"partitions": str(spec.partitions), "replication.factor": str(spec.replication_factor)}
    assert created == {**sizes, **spec.creation_config}
    if topic == SETTINGS.wait.topic:
        assert spec == wait_spec(SETTINGS)
    else:
        assert spec.creation_config["max.message.bytes"] == str(1_000_003 + 131_072)
