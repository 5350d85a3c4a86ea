"""Settings of the product as it is measured, and its topics: made as `waitreg topics create` does, gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from bench.contenders.arguments import FlowArguments
from bench.contenders.metered_handler import HANDLER
from wait_registry.kafka.clients import admin
from wait_registry.kafka.topics import create_topics
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.relations import least_ttl_s
from wait_registry.settings.root import Settings
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings

WAIT_PARTITIONS: Final = 4
DELETED_S: Final = 30.0


def registry_settings(arguments: FlowArguments, port: int = 0, **processor: Any) -> Settings:
    """Return the product's settings for a run: defaults, but for one broker and what is given.

    Args:
        arguments: what to consume, and how many at once. The run's own topics are named after its group.
        port: of the metrics endpoint.
        processor: settings of the processor that aren't at their defaults. The time to live is raised as far as they
            need it.
    """
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=arguments.kafka),
        wait=WaitTopicSettings(
            topic=f"{arguments.group}.wait", partitions=WAIT_PARTITIONS, replication_factor=1, min_insync_replicas=1
        ),
        dead_letter=DeadLetterSettings(topic=f"{arguments.group}.dlq", partitions=1),
        processor=ProcessorSettings(
            group=arguments.group,
            topics=(arguments.topic,),
            handler=HANDLER,
            max_in_flight=arguments.in_flight,
            **processor,
        ),
        telemetry=TelemetrySettings(port=port),
    )
    ttl_s = max(settings.processor.ttl_s, round(least_ttl_s(settings)) + 1)
    longer = settings.processor.model_copy(update={"ttl_s": ttl_s})
    return settings.model_copy(update={"processor": longer})


@contextmanager
def own_topics(settings: Settings, keep: bool = False) -> Iterator[None]:
    """Make the wait and dead letter topic for a block, and delete them after it unless they are to be kept."""
    create_topics(settings)
    try:
        yield
    finally:
        if not keep:
            delete_topics(settings.kafka.bootstrap_servers, settings.wait.topic, settings.dead_letter.topic)


def delete_topics(kafka: str, *topics: str) -> None:
    """Delete topics and wait for the answer; one that isn't there is as good as deleted."""
    client = admin(KafkaSettings(bootstrap_servers=kafka))
    for deleted in client.delete_topics(list(topics)).values():
        deleted.exception(DELETED_S)
