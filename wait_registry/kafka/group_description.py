"""Who is in a consumer group, and who has which of its partitions, as its coordinator sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError

from wait_registry.errors import PermanentError, TransientError
from wait_registry.kafka import group_question
from wait_registry.kafka.clients import plain_properties
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.kafka import KafkaSettings

# What a process takes to begin and to end, s.
OVERHEAD_S = 10.0


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """What a coordinator says of a group.

    ``stable`` when nobody is on the way from one assignment to the next. By member id, ``held`` has the partitions,
    topic and number, that a member has been given, and ``due`` those that it is to have when all have given up theirs.
    """

    stable: bool = False
    held: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    due: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)

    def differing(self, member: str, assigned: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Return what a member has and is not to have, and what it is to have, lacks, and nobody else has.

        Brokers of 4.3 count as held what a member still has to give up; older ones may not, so that what another member
        takes its time to give up differs here.

        Args:
            member: its id; one that the coordinator doesn't know is to have nothing.
            assigned: what it says that it has.
        """
        due = self.due.get(member, frozenset())
        others = frozenset[TopicPartition]().union(*(places for other, places in self.held.items() if other != member))
        return (assigned - due) | (due - assigned - others)


def describe_group(kafka: KafkaSettings, group: str) -> GroupDescription:
    """Ask the group's coordinator, in a process of its own.

    librdkafka aborts the process that describes a group while the coordinator comes back from an outage (its issue
    4605, open in 2.16): here that costs the question, not the service that asks.

    Args:
        kafka: the cluster; ``request_timeout_s`` limits the question.
        group: a group that isn't there yet has no members.

    Raises:
        TransientError: no answer, or no process to ask; retry.
        WaitRegistryError: the coordinator refuses us, or the process that asks can't work here.
    """
    doing = f"describing group {group}"
    question = {"properties": plain_properties(kafka), "group": group, "timeout_s": kafka.request_timeout_s}
    try:
        # By its path, and -P: nothing that lies in the working directory is imported.
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
        raise TransientError(f"{doing} failed: no process can be started that asks: {error}") from error
    if asked.returncode:
        said = asked.stderr.strip().rpartition("\n")[2]
        seen = f"{doing} failed: the process that asks ended with status {asked.returncode}: {said}"
        raise TransientError(seen) if asked.returncode < 0 else PermanentError(seen)
    return _description(json.loads(asked.stdout), doing)


def _description(answer: dict[str, Any], doing: str) -> GroupDescription:
    if "error" in answer:
        code, text = answer["error"]
        if code == KafkaError.GROUP_ID_NOT_FOUND:
            return GroupDescription()
        raise kafka_failure(KafkaError(code, text), doing)
    return GroupDescription(answer["stable"], _by_member(answer["held"]), _by_member(answer["due"]))


def _by_member(found: dict[str, list[list[Any]]]) -> dict[str, frozenset[TopicPartition]]:
    return {member: frozenset((topic, number) for topic, number in places) for member, places in found.items()}
