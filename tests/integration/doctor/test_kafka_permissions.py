"""Doctor names missing permissions in Kafka, with the command that grants them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import cast

import pytest

from tests.conftest import SettingsFactory
from tests.support.naming import Names
from tests.support.secured_broker import Resource, SecuredBroker
from tests.support.topics import Topics
from wait_registry.cli.checks.kafka_permissions import (
    NO_AUTHORIZER,
    permissions,
    redrive_transactions,
    sweeper_transactions,
)
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind

TOOL_NAMES = {"DescribeConfigs": "DESCRIBE_CONFIGS", "IdempotentWrite": "IDEMPOTENT_WRITE"}


@pytest.fixture
def operator(secured: SecuredBroker, settings_for: SettingsFactory) -> Iterator[Settings]:
    """Settings of a user with all permissions on the secured broker, where the topics exist."""
    settings = settings_for({"kafka.bootstrap_servers": secured.operator})
    own = Topics(secured.operator)
    own.create_own(settings)
    yield settings
    own.close()


@pytest.fixture
def user(secured: SecuredBroker, names: Names, settings_for: SettingsFactory, operator: Settings) -> Settings:
    """The same settings for a user without permissions."""
    name = f"{names.prefix}-user"
    return settings_for(secured.security("SASL_PLAINTEXT", name, secured.add_user(name)))


def _obey(secured: SecuredBroker, command: str) -> None:
    """Do what a kafka-acls command would do, with the operator's client."""
    words = shlex.split(command)
    operations = [words[place + 1] for place, word in enumerate(words) if word == "--operation"]
    resource = next(word for word in words if word in ("--topic", "--group", "--transactional-id"))
    user = words[words.index("--allow-principal") + 1].removeprefix("User:")
    secured.grant(
        user,
        cast("Resource", resource.removeprefix("--").replace("-", "_")),
        words[words.index(resource) + 1],
        [TOOL_NAMES.get(operation, operation.upper()) for operation in operations],
        prefixed="prefixed" in words,
    )


@pytest.mark.parametrize(
    ("service", "lacking"),
    [
        (
            "processor",
            {
                "topic wait": "WRITE",
                "topic dlq": "WRITE",
                "topic input": "READ",
                "topic redelivery": "READ",
                "group group": "READ",
            },
        ),
        (
            "sink",
            {"topic wait": "READ", "topic dlq": "READ", "topic operations": "READ", "group waitreg.sink.": "READ"},
        ),
        ("sweeper", {"topic wait": "READ, WRITE", "topic dlq": "WRITE", "group waitreg.sweep.": "DESCRIBE"}),
    ],
)
def test_the_named_grants_suffice(
    secured: SecuredBroker, user: Settings, names: Names, service: Service, lacking: dict[str, str]
) -> None:
    again = redelivery_topic(user.processor.topics[0], user.processor.group)
    # Without it committed records stay in the redelivery topic.
    emptying = f"DELETE on topic {again} not allowed"

    def named(word: str) -> str:
        return again if word == "redelivery" else names(word) if word.isalpha() else f"{word}{user.wait.topic}"

    lines = list(permissions(service, user))
    assert {line.message for line in lines if line.message != emptying} == {
        f"{operations}{further} on {kind} {named(word)} not allowed"
        for (kind, word), operations in ((what.split(), operations) for what, operations in lacking.items())
        for further in (", DESCRIBE, DESCRIBE_CONFIGS" if kind == "topic" else "",)
    }
    # Without these a processor works, and no redriven record reaches it; without its group a sink works, and only lag
    # tools don't see it.
    works_without = {
        "processor": {emptying, f"READ, DESCRIBE, DESCRIBE_CONFIGS on topic {again} not allowed"},
        "sink": {f"READ on group waitreg.sink.{user.wait.topic} not allowed"},
    }
    assert {line.message for line in lines if line.severity is Severity.WARNING} == works_without.get(service, set())
    for line in lines:
        _obey(secured, line.fix)
    [line] = permissions(service, user)
    assert line.severity is Severity.OK
    assert line.message.endswith(f" on {len(lacking) + (service == 'processor')} resources")


def test_one_missing_permission_is_the_one_named(secured: SecuredBroker, user: Settings) -> None:
    for line in permissions("sweeper", user):
        _obey(secured, line.fix)
    name = str(user.kafka.security.username)
    secured.revoke(name, "topic", user.wait.topic, ["WRITE"])
    [line] = permissions("sweeper", user)
    assert (line.severity, line.message) == (Severity.ERROR, f"WRITE on topic {user.wait.topic} not allowed")


def test_all_permissions_are_ok(operator: Settings) -> None:
    services: tuple[Service, ...] = ("processor", "sink", "sweeper")
    for service in services:
        [line] = permissions(service, operator)
        assert (line.severity, line.message.startswith("all ")) == (Severity.OK, True)
    assert _transactions(operator).message == NO_AUTHORIZER


def test_transactional_ids_are_checked_if_the_rules_are_readable(secured: SecuredBroker, user: Settings) -> None:
    unseen = _transactions(user)
    assert (unseen.severity, "can't be checked with this user's permissions" in unseen.message) == (Severity.OK, True)
    secured.grant(str(user.kafka.security.username), "cluster", "", ["DESCRIBE"])
    lacking = _transactions(user)
    assert lacking.severity is Severity.WARNING
    _obey(secured, lacking.fix)
    assert _transactions(user).severity is Severity.OK


def test_a_redrive_needs_what_is_named(secured: SecuredBroker, user: Settings) -> None:
    lines = list(permissions("redrive", user))
    group, topic = user.processor.group, user.operations.topic
    redelivery = redelivery_topic(user.processor.topics[0], group)
    assert {line.message for line in lines} == {
        f"READ, WRITE, DESCRIBE, DESCRIBE_CONFIGS on topic {topic} not allowed",
        f"WRITE, DESCRIBE, DESCRIBE_CONFIGS on topic {redelivery} not allowed",
        f"DESCRIBE on topic {user.wait.topic} not allowed",
        f"DESCRIBE on topic {user.dead_letter.topic} not allowed",
        f"DESCRIBE on group waitreg.redrive.{topic} not allowed",
        f"DESCRIBE on group {group} not allowed",
    }
    for line in lines:
        assert line.severity is Severity.ERROR
        _obey(secured, line.fix)
    [line] = permissions("redrive", user)
    assert line.severity is Severity.OK

    secured.grant(str(user.kafka.security.username), "cluster", "", ["DESCRIBE"])
    [lacking] = redrive_transactions(user)
    assert (lacking.severity, f"WRITE on waitreg.redrive.{group} " in lacking.message) == (Severity.WARNING, True)
    _obey(secured, lacking.fix)
    [line] = redrive_transactions(user)
    assert line.severity is Severity.OK


def test_a_redrive_alongside_connect_also_needs_to_see_its_sink(user: Settings) -> None:
    kept = user.model_copy(update={"sink": user.sink.model_copy(update={"kind": SinkKind.CONNECT})})
    messages = {line.message for line in permissions("redrive", kept)}
    assert f"READ, DESCRIBE on topic {user.wait.topic} not allowed" in messages
    assert f"DESCRIBE on group {user.sink.connect_group} not allowed" in messages


def _transactions(settings: Settings) -> Diagnosis:
    [line] = sweeper_transactions(settings)
    return line
