"""`waitreg rewind` with the permissions of deploy/kafka/rewind.sh, `waitreg replay` with those of a processor."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import Counts
from tests.refusals.secured_settings import SecuredSettings
from tests.support.command import run_waitreg
from tests.support.committed_offsets import commit_as_operator, committed
from tests.support.kafka_io import Outgoing
from tests.support.rights import Right, grant, rights_in
from wait_registry.settings.tree import Settings
from waitreg.replay.service import ReplayService

PASSWORD = "SASL_PLAINTEXT"


def prepared(own: SecuredSettings, processors: Processors, *, granted: bool) -> Settings:
    """Return the settings of a group that has committed offset 3 of an input with five records."""
    handler = {"processor.handler": processors.handler(Counts())}
    settings = own.of("processor", PASSWORD, handler, granted=granted)
    topic = settings.processor.topics[0]
    own.topics.produce(topic, [Outgoing(b"value", partition=0)] * 5)
    commit_as_operator(own.topics.bootstrap, settings.processor.group, [TopicPartition(topic, 0, 3)])
    return settings


def position(own: SecuredSettings, settings: Settings) -> int:
    [offset] = committed(own.topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1)
    return offset


def rights_of_rewind(settings: Settings) -> list[Right]:
    variables = {"GROUP": settings.processor.group, "INPUT_TOPICS": settings.processor.topics[0]}
    return rights_in("rewind.sh", {**variables, "WAIT_TOPIC": settings.wait.topic})


def test_a_rewind_needs_the_permissions_of_its_file(
    secured_settings: SecuredSettings, processors: Processors, tmp_path: Path
) -> None:
    own = secured_settings
    settings = prepared(own, processors, granted=False)
    grant(own.secured, own.user("processor"), rights_of_rewind(settings))
    moved = run_waitreg(tmp_path, "rewind", "--to-earliest", settings=settings)
    assert moved.code == 0, moved.errors
    assert position(own, settings) == 0


@pytest.mark.parametrize(
    ("missing", "left", "said"),
    [
        ("input", ("DESCRIBE",), "committing offsets of {topic} as group {group} failed: "),
        ("input", (), "describing topic {topic} failed: Broker: Topic authorization failed"),
        ("group", (), "describing group {group} failed: Broker: Group authorization failed"),
        ("wait", (), "describing topic {wait} failed: Broker: Topic authorization failed"),
    ],
)
def test_a_rewind_without_a_permission_names_it_and_moves_nothing(
    missing: str,
    left: tuple[str, ...],
    said: str,
    secured_settings: SecuredSettings,
    processors: Processors,
    tmp_path: Path,
) -> None:
    own = secured_settings
    settings = prepared(own, processors, granted=False)
    for right in rights_of_rewind(settings):
        operations = left if right.name.endswith(missing) else right.operations
        if operations:
            grant(own.secured, own.user("processor"), [right._replace(operations=operations)])
    refused = run_waitreg(tmp_path, "rewind", "--to-earliest", settings=settings)
    assert refused.code == 2
    named = {"group": settings.processor.group, "topic": settings.processor.topics[0], "wait": settings.wait.topic}
    assert said.format(**named) in refused.errors
    assert "Grant the user of kafka.security" in refused.errors
    assert position(own, settings) == 3


def test_a_replay_needs_what_a_processor_needs(secured_settings: SecuredSettings, processors: Processors) -> None:
    settings = prepared(secured_settings, processors, granted=True)
    service = ReplayService(settings, {(settings.processor.topics[0], 0): range(1, 4)})
    service.run()
    assert service.summary() == "settled 3 records: 3 done"
    assert position(secured_settings, settings) == 3
