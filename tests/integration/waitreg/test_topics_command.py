"""`waitreg topics`: makes what is missing, leaves what is there, prints what fixes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.naming import Names
from tests.support.topics import Topics


def test_create_makes_only_what_is_missing(settings_for: SettingsFactory, topics: Topics, tmp_path: Path) -> None:
    settings = settings_for({"processor.topics": (), "processor.group": ""})
    wait, dlq = settings.wait.topic, settings.dead_letter.topic
    before = run_waitreg(tmp_path, "topics", "check", settings=settings)
    assert before.code == 2
    assert f"error     topic {wait}: the wait topic is missing" in before.output
    assert "fix: `waitreg topics create`" in before.output
    first = run_waitreg(tmp_path, "topics", "create", settings=settings)
    topics.delete_at_end(wait, dlq)
    assert first.code == 0, first.output + first.errors
    assert f"created   topic {wait}" in first.output
    assert f"created   topic {dlq}" in first.output
    again = run_waitreg(tmp_path, "topics", "create", settings=settings)
    assert again.code == 0
    assert "created" not in again.output
    # One broker keeps one replica: worth a warning, but services start.
    check = run_waitreg(tmp_path, "topics", "check", settings=settings)
    assert check.code == 0
    assert "warning   topic" in check.output
    assert "replication factor is 1" in check.output
    assert check.output.splitlines()[-1] == "3 topics, nothing that keeps a service from starting, 3 warnings"


def test_create_makes_missing_input_topics_only_when_asked_to(
    settings_for: SettingsFactory, topics: Topics, names: Names, tmp_path: Path
) -> None:
    settings = settings_for({"processor.topics": (names("orders"), names("refunds"))})
    topics.create(names("refunds"), 1)
    topics.delete_at_end(settings.wait.topic, settings.dead_letter.topic, names("orders"))
    without = run_waitreg(tmp_path, "topics", "create", settings=settings)
    assert without.code == 2
    assert f"topic {names('orders')}: the input topic is missing" in without.output
    assert "--input-partitions" in without.output
    asked = run_waitreg(tmp_path, "topics", "create", "--input-partitions", "5", settings=settings)
    assert asked.code == 0, asked.output + asked.errors
    assert f"created   topic {names('orders')}\n" in asked.output
    described = topics.admin.list_topics(timeout=15).topics
    assert len(described[names("orders")].partitions) == 5
    assert len(described[names("refunds")].partitions) == 1


@pytest.mark.guarantee("P8.25")
def test_create_resolves_the_dead_letter_topics_or_names_what_is_unset(
    settings_for: SettingsFactory, topics: Topics, names: Names, tmp_path: Path
) -> None:
    orders = names("orders")
    topics.create(orders, 1)
    by_topic = {"dead_letter.topic": "{topic}.dlq", "processor.topics": (orders,), "processor.group": ""}
    settings = settings_for(by_topic)
    topics.delete_at_end(settings.wait.topic, f"{orders}.dlq")
    made = run_waitreg(tmp_path, "topics", "create", settings=settings)
    assert made.code == 0, made.output + made.errors
    assert f"created   topic {orders}.dlq\n" in made.output
    by_group = settings_for({**by_topic, "dead_letter.topic": "{topic}.{group}.dlq"})
    unknown = run_waitreg(tmp_path, "topics", "create", settings=by_group)
    assert unknown.code == 2
    assert "'{topic}.{group}.dlq', which needs processor.group. No dead letter topic was created" in unknown.output
    named = settings_for(
        {**by_topic, "dead_letter.topic": "{group}.dlq", "sink.dead_letter_topics": (f"{orders}.dlq",)}
    )
    assert run_waitreg(tmp_path, "topics", "create", settings=named).code == 0, "they are listed"


def test_a_redelivery_topic_without_a_name_is_reported_with_what_to_do(
    settings_for: SettingsFactory, topics: Topics, names: Names, tmp_path: Path
) -> None:
    orders = names("orders")
    topics.create(orders, 1)
    settings = settings_for({"processor.topics": (orders,), "processor.group": "data/serving"})
    topics.delete_at_end(settings.wait.topic, settings.dead_letter.topic)
    for command in ("create", "check"):
        ended = run_waitreg(tmp_path, "topics", command, settings=settings)
        assert ended.code == 0, ended.output + ended.errors
        assert "warning   redelivery topics: processor.group is 'data/serving'" in ended.output
        assert "`--to origin`" in ended.output
    report = json.loads(run_waitreg(tmp_path, "topics", "check", "--json", settings=settings).output)
    assert "topic.redelivery.name" in [check["id"] for check in report["checks"]]


def test_a_broker_that_is_away_ends_with_1_and_one_line(settings_for: SettingsFactory, tmp_path: Path) -> None:
    away = settings_for({"kafka.bootstrap_servers": "127.0.0.1:1", "kafka.request_timeout_s": 2})
    ended = run_waitreg(tmp_path, "topics", "check", settings=away)
    assert ended.code == 1
    # What the Kafka client prints about it would tear the command's own line apart.
    [line] = ended.errors.splitlines()
    assert line.startswith("waitreg topics check: ")
    assert "127.0.0.1:1" in line and "Connection refused" in line
    assert "check kafka.bootstrap_servers" in line
