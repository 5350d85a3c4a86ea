"""Doctor names missing permissions in Kafka, with the command that grants them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import cast

import pytest

from tests.conftest import SettingsFactory
from tests.support.naming import Names
from tests.support.secured_broker import Resource, SecuredBroker
from tests.support.topics import Topics
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings
from waitreg.doctor.kafka_permissions import NO_AUTHORIZER, permissions, redrive_transactions, sweeper_transactions

PROCESSOR = dict.fromkeys(("topic wait", "topic dlq"), "WRITE")
PROCESSOR |= dict.fromkeys(("topic input", "topic redelivery", "group group"), "READ")
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
        ("processor", PROCESSOR),
        ("sink", dict.fromkeys(("topic wait", "topic dlq", "topic operations", "group waitreg.sink."), "READ")),
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


def test_all_permissions_are_ok(operator: Settings) -> None:
    services: tuple[Service, ...] = ("processor", "sink", "sweeper")
    for service in services:
        [line] = permissions(service, operator)
        assert (line.severity, line.message.startswith("all ")) == (Severity.OK, True)
    [line] = sweeper_transactions(operator)
    assert line.message == NO_AUTHORIZER


@pytest.mark.parametrize("transactions", [sweeper_transactions, redrive_transactions])
def test_transactional_ids_are_checked_if_the_rules_are_readable(
    transactions: Callable[[Settings], Iterable[Diagnosis]], secured: SecuredBroker, user: Settings
) -> None:
    [unseen] = transactions(user)
    assert (unseen.severity, "can't be checked with this user's permissions" in unseen.message) == (Severity.OK, True)
    secured.grant(str(user.kafka.security.username), "cluster", "", ["DESCRIBE"])
    [lacking] = transactions(user)
    assert lacking.severity is Severity.WARNING
    _obey(secured, lacking.fix)
    [found] = transactions(user)
    assert found.severity is Severity.OK
