"""The number of consumers in a group."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from wait_registry.kafka.requests import answer, persistently, timeout_of


def group_members(admin: AdminClient, group: str) -> int:
    """Ask the group's coordinator.

    Args:
        admin: the client to ask; its request limit applies.
        group: it need not exist.

    Returns:
        Members that have joined and neither left nor timed out; 0 for a group that doesn't exist.

    Raises:
        ConfigurationError: no permission (DESCRIBE) on the group.
        TransientError: no answer in that time; retry.
    """

    def ask() -> int:
        future = admin.describe_consumer_groups([group], request_timeout=timeout_of(admin))[group]
        return len(answer(admin, future, f"describing group {group}").members)

    return persistently(admin, ask)
