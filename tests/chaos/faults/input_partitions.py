"""An input topic that grows while it is consumed."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault

MORE = 2
ATTEMPTS = 30
PAUSE_S = 1.0
REQUEST_S = 10.0


def add(scene: Scene, fault: PlannedFault) -> str:
    """Add partitions to the input topic; a broker that is away is waited for."""
    topic = scene.place.input
    admin = AdminClient({"bootstrap.servers": scene.stage.stack.bootstrap_servers, "log_level": 0})
    with scene.locks["input"]:
        for _ in range(ATTEMPTS):
            try:
                return _grow(admin, topic, lambda: scene.begins(fault))
            except KafkaException:
                scene.pause(PAUSE_S)
    return ""


def _grow(admin: AdminClient, topic: str, begins: Callable[[], None]) -> str:
    before = len(admin.list_topics(topic, timeout=REQUEST_S).topics[topic].partitions)
    if not before:
        raise KafkaException("no answer about the topic")
    begins()
    asked = admin.create_partitions([NewPartitions(topic, before + MORE)], request_timeout=REQUEST_S)
    asked[topic].result(REQUEST_S)
    return f"{topic} has {before + MORE} partitions instead of {before}"
