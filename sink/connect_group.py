"""The consumer group of a Kafka Connect sink, which shows whether one runs."""

from __future__ import annotations

import logging

from wait_registry.errors import FencedError, WaitRegistryError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.group_description import describe_group, group_members
from wait_registry.kafka.requests import persistently
from wait_registry.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)


def require_stopped(admin: Admin, group: str) -> None:
    """Refuse to continue while the Connect sink has tasks.

    Raises:
        FencedError: it has: stop it. Pausing isn't enough, a paused task stays a member and holds what it has read.
        ConfigurationError: we may not see its group (DESCRIBE).
        TransientError: Kafka doesn't answer; retry.
    """
    members = group_members(admin, group)
    if members:
        raise FencedError(
            f"a Kafka Connect sink is running: its group {group} (sink.connect_group) has {members} members. Stop it, "
            "not pause it: PUT /connectors/<name>/stop of Connect's REST API. Then run the rebuild again, and start "
            "the sink after it"
        )


def require_no_second_sink(admin: Admin, kafka: KafkaSettings, group: str, topic: str) -> None:
    """Refuse to write tables that a Connect sink writes, whatever sink.kind says.

    A group is named after its connector, so one of this name may be another registry's: what counts is that a member
    has partitions of our wait topic. If Kafka doesn't answer within the request limit, a warning says so and
    the setting must do: a sink of ours needs no group.

    Raises:
        FencedError: one does: remove it, then start again.
    """
    try:
        found = persistently(admin, lambda: describe_group(kafka, group))
    except WaitRegistryError as error:
        log.warning(
            "whether a Kafka Connect sink writes these rows as well can't be seen, which takes DESCRIBE on its group: "
            "only sink.kind counts (%s)",
            error,
        )
        return
    places = frozenset[tuple[str, int]]().union(*found.held.values(), *found.due.values())
    read = sorted(number for name, number in places if name == topic)
    if read:
        raise FencedError(
            f"a Kafka Connect sink writes these tables: its group {group} (sink.connect_group) reads the partitions "
            f"{', '.join(map(str, read))} of {topic}. Alongside a sink of ours it would bring back what is settled, "
            "and a sweeper would export it. Let one write: delete its connectors (DELETE /connectors/<name> of "
            "Connect's REST API), then run `waitreg rebuild` and `waitreg sink`; or leave it to them and set "
            "sink.kind=connect everywhere"
        )
