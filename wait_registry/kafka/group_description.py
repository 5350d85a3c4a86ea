"""The members of a consumer group and their partitions, as its coordinator sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from wait_registry.errors import PermanentError, TransientError
from wait_registry.kafka import group_question
from wait_registry.kafka.clients import plain_properties
from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.requests import answer, persistently, timeout_of
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.kafka import KafkaSettings

# Time for a process to start and end, s.
OVERHEAD_S = 10.0


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """The members of a group.

    ``stable`` if no member is moving to another assignment. By member ID, ``held`` are a member's partitions,
    ``due`` those that it will have when all members have given up theirs, and ``hosts`` where it runs.
    """

    stable: bool = False
    held: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    due: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)

    def differing(self, member: str, assigned: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Return the partitions that a member has and shouldn't, and those that it should have and no member has.

        Brokers of 4.3 count as held what a member still has to give up. Older ones may not, so a partition that another
        member gives up slowly is returned.

        Args:
            member: its ID; an unknown member should have nothing.
            assigned: the partitions that it reports.
        """
        due = self.due.get(member, frozenset())
        others = frozenset[TopicPartition]().union(*(places for other, places in self.held.items() if other != member))
        return (assigned - due) | (due - assigned - others)


def describe_group(kafka: KafkaSettings, group: str) -> GroupDescription:
    """Ask the group's coordinator, in a process of its own.

    Workaround: librdkafka aborts the process that describes a group while the coordinator returns from an outage
    (https://github.com/confluentinc/librdkafka/issues/4605, open in 2.16).

    Args:
        kafka: the cluster; ``request_timeout_s`` limits the request.
        group: a group that doesn't exist yet has no members.

    Raises:
        TransientError: no answer, or no process can be started; retry.
        WaitRegistryError: the coordinator refuses us, or the process can't run here.
    """
    doing = f"describing group {group}"
    question = {"properties": plain_properties(kafka), "group": group, "timeout_s": kafka.request_timeout_s}
    try:
        # By path and with -P, so that nothing in the working directory is imported.
        asked = subprocess.run(
            [sys.executable, "-P", group_question.__file__],
            input=json.dumps(question),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=kafka.request_timeout_s + OVERHEAD_S,
        )
    except subprocess.TimeoutExpired as error:
        raise TransientError(f"{doing} failed: no answer within {error.timeout:g} s") from error
    except OSError as error:
        raise TransientError(f"{doing} failed: can't start the process that asks: {error}") from error
    if asked.returncode:
        last_line = asked.stderr.strip().rpartition("\n")[2]
        seen = f"{doing} failed: the process that asks ended with status {asked.returncode}: {last_line}"
        raise TransientError(seen) if asked.returncode < 0 else PermanentError(seen)
    return _description(json.loads(asked.stdout), doing)


def group_members(admin: AdminClient, group: str) -> int:
    """Ask the group's coordinator.

    Args:
        admin: the client to ask; its request limit applies.
        group: it need not exist.

    Returns:
        Members that have joined and neither left nor timed out; 0 for a group that doesn't exist.

    Raises:
        ConfigurationError: no permission (DESCRIBE) on the group.
    """

    def ask() -> int:
        future = admin.describe_consumer_groups([group], request_timeout=timeout_of(admin))[group]
        return len(answer(admin, future, f"describing group {group}").members)

    return persistently(admin, ask)


def _description(answer: dict[str, Any], doing: str) -> GroupDescription:
    if "error" in answer:
        code, text = answer["error"]
        if code == KafkaError.GROUP_ID_NOT_FOUND:
            return GroupDescription()
        raise kafka_failure(KafkaError(code, text), doing)
    return GroupDescription(answer["stable"], _by_member(answer["held"]), _by_member(answer["due"]), answer["hosts"])


def _by_member(found: dict[str, list[list[Any]]]) -> dict[str, frozenset[TopicPartition]]:
    return {member: frozenset((topic, number) for topic, number in places) for member, places in found.items()}
