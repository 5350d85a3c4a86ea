"""Describes a consumer group in a process of its own; see `wait_registry.kafka.group_description`.

Standard input: a JSON object with the client's ``properties``, ``group`` and ``timeout_s``. Standard output: a JSON
object with ``stable``, ``held`` and ``due`` (partitions by member id) and ``hosts`` (by member id), or with ``error``
(librdkafka's code and text).
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient, MemberAssignment


def ask(question: dict[str, Any]) -> dict[str, Any]:
    """Ask the group's coordinator and return the answer."""
    group = question["group"]
    client = AdminClient(question["properties"])
    try:
        described = client.describe_consumer_groups([group], request_timeout=question["timeout_s"])[group].result()
    except KafkaException as error:
        return {"error": [error.args[0].code(), error.args[0].str()]}
    held = {member.member_id: _places(member.assignment) for member in described.members}
    # Only groups of KIP-848 have a target.
    due = {member.member_id: _places(member.target_assignment or member.assignment) for member in described.members}
    hosts = {member.member_id: member.host for member in described.members}
    return {"stable": described.state is ConsumerGroupState.STABLE, "held": held, "due": due, "hosts": hosts}


def _places(assignment: MemberAssignment) -> list[list[object]]:
    return [[place.topic, place.partition] for place in assignment.topic_partitions]


if __name__ == "__main__":
    # librdkafka may abort here, and a core dump would hold the client's secrets.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    json.dump(ask(json.load(sys.stdin)), sys.stdout)
