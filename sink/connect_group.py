"""The consumer group of a Kafka Connect sink: the one thing of it that can be seen from here."""

from __future__ import annotations

from wait_registry.errors import FencedError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.group_members import group_members


def require_stopped(admin: Admin, group: str) -> None:
    """Refuse to go on while the Connect sink has tasks.

    Raises:
        FencedError: it has: stop it. Pausing isn't enough, a paused task stays a member and holds what it has read.
        ConfigurationError: we may not see its group (DESCRIBE).
        TransientError: Kafka doesn't answer; retry.
    """
    members = group_members(admin, group)
    if members:
        raise FencedError(
            f"a Kafka Connect sink is running: its group {group} (sink.connect_group) has {members} members. Stop it, "
            "not pause it: PUT /connectors/<name>/stop of Connect's REST API, or `waitreg connect remove`. Then run "
            "the rebuild again, and start the sink after it"
        )
