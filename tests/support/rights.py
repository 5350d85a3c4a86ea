"""The rights that each service needs, and no more: what the files in deploy/kafka grant, for a broker that asks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

from tests.support.secured_broker import Resource, SecuredBroker
from wait_registry.kafka.topic_specs import TopicUser, dead_letter_topics, redelivery_topics
from wait_registry.settings.relations import Service
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "kafka"
KAFKA_ACLS = Path(__file__).with_name("said_by_kafka_acls.sh")
# The tool writes names of operations together, the protocol doesn't.
OPERATIONS = {"DescribeConfigs": "DESCRIBE_CONFIGS"}


class Right(NamedTuple):
    resource: Resource
    name: str
    operations: tuple[str, ...]
    prefixed: bool = False


def rights_of(service: TopicUser, settings: Settings) -> list[Right]:
    """Return what the file of a service grants with these settings; DESCRIBE comes with READ and WRITE."""
    variables = {
        "GROUP": settings.processor.group,
        "INPUT_TOPICS": " ".join(settings.processor.topics),
        "WAIT_TOPIC": settings.wait.topic,
        "DEAD_LETTER_TOPICS": " ".join(dead_letter_topics(settings, None if service == "redrive" else service)),
        "OPERATIONS_TOPIC": settings.operations.topic,
        "SINK_GROUP": settings.sink.offset_group or f"waitreg.sink.{settings.wait.topic}",
        "CONNECT_GROUP": settings.sink.connect_group,
    }
    if service == "redrive":
        by_connect = settings.sink.kind is SinkKind.CONNECT
        variables["REDELIVERY_TOPICS"] = " ".join(redelivery_topics(settings))
        variables["CONNECT_GROUP"] = settings.sink.connect_group if by_connect else ""
    return rights_in(f"{service}.sh", variables)


def rights_in(file: str, variables: Mapping[str, str]) -> list[Right]:
    """Return what a file of deploy/kafka grants: it is run, and asked for by a tool that only repeats its arguments.

    Args:
        file: its name.
        variables: the variables of its environment, ``PRINCIPAL`` apart.
    """
    return [_right(call.splitlines()) for call in _calls(file, tuple(sorted(variables.items())))]


def grant_all(secured: SecuredBroker, user: str, service: Service, settings: Settings) -> None:
    grant(secured, user, rights_of(service, settings))


def grant(secured: SecuredBroker, user: str, rights: list[Right]) -> None:
    for right in rights:
        secured.grant(user, right.resource, right.name, right.operations, prefixed=right.prefixed)


def grant_worker(secured: SecuredBroker, user: str, group: str) -> None:
    """Give a worker its own group, its three topics (which it makes), and the transactions of its leader."""
    secured.grant(user, "group", group, ("READ",))
    secured.grant(user, "topic", f"{group}-", ("READ", "WRITE", "CREATE", "DESCRIBE_CONFIGS"), prefixed=True)
    secured.grant(user, "transactional_id", f"connect-cluster-{group}", ("WRITE",))


def grant_sink(secured: SecuredBroker, user: str, settings: Settings, connectors: Sequence[Connector]) -> None:
    """Let sinks read their topics in their groups, and put aside what they can't read."""
    for topic in (settings.wait.topic, settings.dead_letter.topic):
        secured.grant(user, "topic", topic, ("READ",))
    for connector in connectors:
        secured.grant(user, "group", f"connect-{connector.name}", ("READ",))
        aside = connector.config["errors.deadletterqueue.topic.name"]
        secured.grant(user, "topic", aside, ("CREATE", "WRITE"))


def grant_source(secured: SecuredBroker, user: str, settings: Settings, group: str, ours: Sequence[Connector]) -> None:
    """Let sources write their topics and their offsets, in transactions of their own."""
    for topic in (settings.wait.topic, settings.dead_letter.topic):
        secured.grant(user, "topic", topic, ("WRITE",))
    secured.grant(user, "topic", f"{group}-offsets", ("READ", "WRITE"))
    for connector in ours:
        heartbeat = f"{connector.config['topic.heartbeat.prefix']}.{connector.config['topic.prefix']}"
        secured.grant(user, "topic", heartbeat, ("CREATE", "WRITE"))
        secured.grant(user, "transactional_id", f"{group}-{connector.name}-", ("WRITE",), prefixed=True)


@cache
def _calls(file: str, variables: tuple[tuple[str, str], ...]) -> list[str]:
    environment = {"PATH": os.environ["PATH"], "KAFKA_ACLS": str(KAFKA_ACLS), "PRINCIPAL": "User:any"}
    command = ["sh", str(FILES / file), "--bootstrap-server", "broker:9093"]
    done = subprocess.run(command, env={**environment, **dict(variables)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{file}: {done.stderr}"
    return [call for call in done.stdout.split("\n\n") if call]


def _right(words: list[str]) -> Right:
    options = list(_options(words))
    given = dict(options)
    assert given["--bootstrap-server"] == "broker:9093", words
    assert given["--allow-principal"] == "User:any", words
    assert "--add" in words, words
    [resource] = {"--topic", "--group", "--transactional-id"} & set(given)
    operations = tuple(OPERATIONS.get(value, value.upper()) for name, value in options if name == "--operation")
    kind = cast("Resource", resource.removeprefix("--").replace("-", "_"))
    return Right(kind, given[resource], operations, given.get("--resource-pattern-type") == "prefixed")


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    valued = [word for word in words if word != "--add"]
    return zip(valued[::2], valued[1::2], strict=True)
