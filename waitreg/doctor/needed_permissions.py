"""Which permissions each service needs in Kafka, and which of them are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Final, Literal

from wait_registry.kafka.topic_specs import TopicRole, TopicUser, topic_specs
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings

Resource = Literal["topic", "group", "transactional-id"]

# Every start describes the topics it uses. IDEMPOTENT_WRITE comes with the permission to write to any topic (KIP-679).
_LOOK: Final = ("DESCRIBE", "DESCRIBE_CONFIGS")
_PERMISSIONS: Final[Mapping[TopicUser, Mapping[TopicRole, tuple[str, ...]]]] = {
    "processor": {
        TopicRole.INPUT: ("READ",),
        TopicRole.REDELIVERY: ("READ",),
        TopicRole.RETRY: ("READ", "WRITE"),
        TopicRole.WAIT: ("WRITE",),
        TopicRole.DEAD_LETTER: ("WRITE",),
    },
    "sink": {TopicRole.WAIT: ("READ",), TopicRole.DEAD_LETTER: ("READ",), TopicRole.OPERATIONS: ("READ",)},
    "sweeper": {TopicRole.WAIT: ("READ", "WRITE"), TopicRole.DEAD_LETTER: ("WRITE",)},
    "redrive": {TopicRole.OPERATIONS: ("READ", "WRITE"), TopicRole.REDELIVERY: ("WRITE",)},
}
# The processor deletes there what it has committed.
_EMPTIED: Final = frozenset({TopicRole.REDELIVERY, TopicRole.RETRY})
# What a broker answers to a user with all permissions on the cluster; only brokers and super users have the second.
ALL_OF_THE_CLUSTER: Final = frozenset({"ALTER", "CLUSTER_ACTION", "DESCRIBE", "IDEMPOTENT_WRITE"})


@dataclass(frozen=True, slots=True)
class Need:
    """Operations (as Kafka names them) that a service needs on one resource.

    Without one that isn't ``essential`` the service works, but lag tools don't see it, committed records stay, or
    redriven records aren't consumed.
    """

    resource: Resource
    name: str
    operations: tuple[str, ...]
    essential: bool = True


def needs(settings: Settings, service: TopicUser) -> list[Need]:
    """List what a service needs: on its topics, and on the consumer groups that it names to the broker."""
    permissions = _PERMISSIONS[service]
    specs = [spec for spec in topic_specs(settings, service) if spec.role in permissions]
    # A redelivery topic need not be there for a processor, but a redrive has nothing else to write to.
    found = [
        Need("topic", spec.topic, (*permissions[spec.role], *_LOOK), spec.required or service == "redrive")
        for spec in specs
    ]
    if service == "processor":
        found += [Need("topic", spec.topic, ("DELETE",), False) for spec in specs if spec.role in _EMPTIED]
    if service == "redrive":
        found += _compared_with_the_tables(settings)
    return [*found, *_groups(settings, service)]


def _compared_with_the_tables(settings: Settings) -> Iterator[Need]:
    """Yield the topics whose ends say how far the tables are behind."""
    # How old the tables of a Connect sink are shows in what it hasn't read.
    read = ("READ",) if settings.sink.kind is SinkKind.CONNECT else ()
    yield Need("topic", settings.wait.topic, (*read, "DESCRIBE"))
    for spec in topic_specs(settings, "sink"):
        if spec.role is TopicRole.DEAD_LETTER:
            yield Need("topic", spec.topic, ("DESCRIBE",))


def _groups(settings: Settings, service: TopicUser) -> Iterator[Need]:
    if service == "processor" and settings.processor.group:
        yield Need("group", settings.processor.group, ("READ",))
    elif service == "sink":
        yield Need("group", settings.sink.offset_group or f"waitreg.sink.{settings.wait.topic}", ("READ",), False)
    elif service == "sweeper":
        yield Need("group", f"waitreg.sweep.{settings.wait.topic}", ("DESCRIBE",))
        if settings.sink.kind is SinkKind.CONNECT:
            yield Need("group", settings.sink.connect_group, ("DESCRIBE",), False)
    elif service == "redrive":
        yield Need("group", f"waitreg.redrive.{settings.operations.topic}", ("DESCRIBE",))
        if settings.processor.group:
            yield Need("group", settings.processor.group, ("DESCRIBE",))
        if settings.sink.kind is SinkKind.CONNECT:
            yield Need("group", settings.sink.connect_group, ("DESCRIBE",))


def missing(need: Need, allowed: frozenset[str]) -> tuple[str, ...]:
    """Return the operations of a need that aren't allowed, in its order."""
    return tuple(operation for operation in need.operations if operation not in allowed)


def grant(settings: Settings, need: Need, operations: tuple[str, ...]) -> str:
    """Return the command that gives these operations to the user of these settings."""
    user = settings.kafka.security.username or "THE-USER"
    # The tool takes DescribeConfigs where the protocol has DESCRIBE_CONFIGS.
    options = " ".join(f"--operation {operation.title().replace('_', '')}" for operation in operations)
    servers, principal, name = map(quote, (settings.kafka.bootstrap_servers, f"User:{user}", need.name))
    command = f"kafka-acls --bootstrap-server {servers} --add --allow-principal {principal}"
    return f"{command} {options} --{need.resource} {name}"
