"""Which rights each service needs in Kafka, and what is missing of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from wait_registry.kafka.topic_specs import TopicRole, topic_specs
from wait_registry.settings.sink import SinkKind

if TYPE_CHECKING:
    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

Resource = Literal["topic", "group", "transactional-id"]

# Every start describes the topics it uses. IDEMPOTENT_WRITE comes with the right to write to any topic (KIP-679).
_LOOK: Final = ("DESCRIBE", "DESCRIBE_CONFIGS")
_RIGHTS: Final[Mapping[Service, Mapping[TopicRole, tuple[str, ...]]]] = {
    "processor": {
        TopicRole.INPUT: ("READ",),
        TopicRole.REDELIVERY: ("READ",),
        TopicRole.WAIT: ("WRITE",),
        TopicRole.DEAD_LETTER: ("WRITE",),
    },
    "sink": {TopicRole.WAIT: ("READ",), TopicRole.DEAD_LETTER: ("READ",)},
    "sweeper": {TopicRole.WAIT: ("READ", "WRITE"), TopicRole.DEAD_LETTER: ("WRITE",)},
}
# What a broker answers to whoever may do everything with a topic.
ALL_OF_A_TOPIC: Final = frozenset(
    {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
)
# And to whoever may do everything with the cluster; the second is what only brokers and super users do.
ALL_OF_THE_CLUSTER: Final = frozenset({"ALTER", "CLUSTER_ACTION", "DESCRIBE", "IDEMPOTENT_WRITE"})


@dataclass(frozen=True, slots=True)
class Need:
    """Operations (as Kafka names them) that a service must be allowed on one resource.

    Without one that isn't ``essential`` the service works, and lag tools don't see it.
    """

    resource: Resource
    name: str
    operations: tuple[str, ...]
    essential: bool = True


def needs(settings: Settings, service: Service) -> list[Need]:
    """List what a service must be allowed: on its topics, and on the consumer groups that it names to the broker."""
    rights = _RIGHTS[service]
    specs = [spec for spec in topic_specs(settings, service) if spec.role in rights]
    found = [Need("topic", spec.topic, (*rights[spec.role], *_LOOK)) for spec in specs]
    return [*found, *_groups(settings, service)]


def _groups(settings: Settings, service: Service) -> Iterator[Need]:
    if service == "processor" and settings.processor.group:
        yield Need("group", settings.processor.group, ("READ",))
    elif service == "sink":
        yield Need("group", settings.sink.offset_group or f"waitreg.sink.{settings.wait.topic}", ("READ",), False)
    elif service == "sweeper":
        yield Need("group", f"waitreg.sweep.{settings.wait.topic}", ("DESCRIBE",))
        if settings.sink.kind is SinkKind.CONNECT:
            yield Need("group", settings.sink.connect_group, ("DESCRIBE",), False)


def missing(need: Need, allowed: frozenset[str]) -> tuple[str, ...]:
    """Return the operations of a need that aren't allowed, in its order."""
    return tuple(operation for operation in need.operations if operation not in allowed)


def grant(settings: Settings, need: Need, operations: tuple[str, ...]) -> str:
    """Return the command that gives these operations to the user of these settings."""
    user = settings.kafka.security.username or "THE-USER"
    return " ".join(
        [
            f"kafka-acls --bootstrap-server {settings.kafka.bootstrap_servers} --add --allow-principal 'User:{user}'",
            *_operations(operations),
            f"--{need.resource} '{need.name}'",
        ]
    )


def _operations(operations: tuple[str, ...]) -> Iterator[str]:
    for operation in operations:
        # The tool wants DescribeConfigs where the protocol says DESCRIBE_CONFIGS.
        yield f"--operation {operation.title().replace('_', '')}"
