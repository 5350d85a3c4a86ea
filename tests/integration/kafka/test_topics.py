"""`create_topics` makes what `check_topics` wants, on the real broker, and a start refuses anything else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.topics import Topics
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.kafka import topics as topics_module
from wait_registry.kafka.topic_rules import TopicState
from wait_registry.kafka.topics import check_topics, create_topics, require_topics
from wait_registry.settings.tree import Settings

SettingsFactory = Callable[..., Settings]


def test_created_topics_satisfy_the_rules_of_a_single_broker(prepared: SettingsFactory) -> None:
    settings = prepared({"processor.expiry_policy": "redeliver", "dead_letter.topic": "{topic}.{group}.dlq"})
    found = check_topics(settings)
    assert len({one.subject for one in found}) == 5
    broken = {one.id.partition("replication")[2] for one in found if one.severity is not Severity.OK}
    assert broken == {".factor"}
    assert Severity.ERROR not in {one.severity for one in found}


def test_missing_topics_are_errors_for_the_services_that_use_them(
    settings_for: SettingsFactory, topics: Topics
) -> None:
    settings = settings_for()
    topics.create_own(settings)
    topics.delete(settings.processor.topics[0])
    topics.delete(settings.dead_letter.topic)
    topics.create(f"{settings.processor.topics[0]}s")
    with pytest.raises(ConfigurationError, match=f"did you mean {settings.processor.topics[0]}s?"):
        require_topics(settings, "processor")
    with pytest.raises(ConfigurationError, match="the input topic is missing"):
        require_topics(settings, "processor")
    with pytest.raises(ConfigurationError) as caught:
        require_topics(settings, "sink")
    assert "input topic" not in str(caught.value)
    assert "`waitreg topics create`" in str(caught.value)


@pytest.mark.guarantee("P8.3")
def test_a_new_topic_that_the_broker_does_not_know_yet_is_asked_again(
    prepared: SettingsFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, read, asked = prepared(), topics_module.read_states, []

    def lags_at_first(client: AdminClient, names: list[str], optional: Collection[str]) -> dict[str, TopicState]:
        asked.append(names)
        states = read(client, names, optional)
        return {name: states[name] for name in names if name != settings.wait.topic or len(asked) > 2}

    monkeypatch.setattr(topics_module, "read_states", lags_at_first)
    require_topics(settings, "processor")
    assert len(asked) == 3


def test_unwise_topics_are_logged_and_accepted(prepared: SettingsFactory, caplog: pytest.LogCaptureFixture) -> None:
    settings = prepared()
    with caplog.at_level(logging.WARNING):
        require_topics(settings, "sweeper")
    both = f"topics {settings.wait.topic}, {settings.dead_letter.topic}"
    assert f"{both}: replication factor is 1, expected at least 3" in caplog.text, "one warning for all of them"


def test_more_replicas_than_brokers_say_which_setting_to_lower(settings_for: SettingsFactory) -> None:
    settings = settings_for({"wait.replication_factor": 3})
    with pytest.raises(ConfigurationError, match=r"can't have 3 replicas: .*Set wait\.replication_factor"):
        create_topics(settings)
