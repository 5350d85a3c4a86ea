"""A topic that is missing is made by Kafka Connect for a source: as `waitreg topics create` would have made it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from tests.evidence import ROOT
from wait_registry.cli.connect.connector_file import read_connector
from wait_registry.cli.connect.variables import variable
from wait_registry.kafka.topic_specs import TopicSpec, topic_specs, wait_spec
from wait_registry.settings.loading import load_settings

GIVEN = {
    "postgres.url": "postgresql://waitreg@db/shop",
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
DEFAULT = "topic.creation.default."


@pytest.mark.parametrize(
    ("connector", "topic"),
    [("expired.source", SETTINGS.dead_letter.topic), ("expired.tombstones", SETTINGS.wait.topic)],
)
def test_it_is_made_with_all_that_our_own_command_sets(connector: str, topic: str) -> None:
    assert made_by(connector) == as_properties(spec_of(topic))


def test_a_spec_of_ours_says_something() -> None:
    assert spec_of(SETTINGS.wait.topic) == wait_spec(SETTINGS)
    assert spec_of(SETTINGS.dead_letter.topic).creation_config["max.message.bytes"] == str(1_000_003 + 131_072)


def spec_of(topic: str) -> TopicSpec:
    """Return what the settings want of a topic."""
    (spec,) = [spec for spec in topic_specs(SETTINGS) if spec.topic == topic]
    return spec


def made_by(connector: str) -> Mapping[str, str]:
    """Return the properties of a topic that Debezium's source needs and that isn't there."""
    file = ROOT / "connect-configs" / f"{connector}.debezium.json"
    config = read_connector(file, partial(variable, settings=SETTINGS)).config
    return {name.removeprefix(DEFAULT): value for name, value in config.items() if name.startswith(DEFAULT)}


def as_properties(spec: TopicSpec) -> Mapping[str, str]:
    """Return a spec in the words of `topic.creation.`."""
    sizes = {"partitions": str(spec.partitions), "replication.factor": str(spec.replication_factor)}
    return {**sizes, **spec.creation_config}
