"""Input topics for trying out: somebody else's in production, but a new stack has none."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.kafka.topics import await_leaders
from wait_registry.settings.root import Settings


def create_input_topics(settings: Settings, partitions: int) -> list[str]:
    """Make those of ``processor.topics`` that are missing, with the broker's defaults, and return their names.

    Raises ConfigurationError when the broker refuses (the message says why), TransientError when it can't be reached.
    """
    client = admin(settings.kafka)
    wanted = [NewTopic(name, partitions, settings.wait.replication_factor) for name in settings.processor.topics]
    if not wanted:
        return []
    futures = client.create_topics(wanted, request_timeout=timeout_of(client))
    made = []
    for name, future in futures.items():
        try:
            answer(client, future, f"creating topic {name}")
        except WaitRegistryError as error:
            if not _exists_already(error):
                raise
        else:
            made.append(name)
    await_leaders(client, made)
    return made


def _exists_already(error: WaitRegistryError) -> bool:
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
