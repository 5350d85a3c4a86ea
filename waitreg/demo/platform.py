"""The demo's broker, Postgres, topics and schema, and the settings of its services."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from wait_registry.kafka.topics import create_topics
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.runtime import LogFormat, LogSettings, TelemetrySettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings
from wait_registry.settings.tree import Settings
from waitreg.demo.background import Backgrounds
from waitreg.demo.plan import DemoPlan
from waitreg.local.background import Background
from waitreg.local.stack import EmbeddedStack, install
from waitreg.reconcile.evidence import query

SCHEMA = "public"
INPUT_PARTITIONS = 4
# The shortest that a broker allows by default: it misses a killed member of a group after 6 s instead of 45.
SESSION_TIMEOUT_MS = 6000


class Platform:
    """A running stack with topics and schema."""

    def __init__(self, stack: EmbeddedStack, backgrounds: Backgrounds, plan: DemoPlan) -> None:
        self.stack = stack
        self.backgrounds = backgrounds
        self.plan = plan
        self.settings = self.settings_of(ProcessorSettings())

    def settings_of(self, processor: ProcessorSettings) -> Settings:
        """Return the settings of all services with this processor section, and nothing else of this host."""
        return Settings(
            kafka=KafkaSettings(
                bootstrap_servers=self.stack.bootstrap_servers,
                librdkafka={"session.timeout.ms": SESSION_TIMEOUT_MS},
            ),
            wait=WaitTopicSettings(
                partitions=4, replication_factor=1, min_insync_replicas=1, skew_allowance_s=self.plan.skew_allowance_s
            ),
            dead_letter=DeadLetterSettings(partitions=2),
            postgres=PostgresSettings(url=SecretStr(self.stack.postgres_url), schema=SCHEMA),
            processor=processor,
            sweeper=SweeperSettings(interval_s=self.plan.sweep_interval_s),
            telemetry=TelemetrySettings(port=0),
            log=LogSettings(format=LogFormat.CONSOLE),
        )

    def start(self, service: str) -> Background:
        """Start the sink or the sweeper; not ready yet."""
        return self.backgrounds.service(service, self.settings)

    @staticmethod
    def create_topics_of(settings: Settings) -> None:
        """Create the input topics and the redelivery topics of a processor."""
        create_topics(settings, INPUT_PARTITIONS)

    def query(self, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return query(self.settings, text, *parameters)


@contextmanager
def running_platform(directory: Path, plan: DemoPlan) -> Iterator[Platform]:
    """Run a stack with wait topic, dead letter topic and schema; logs and scratch files go into the folder."""
    with EmbeddedStack() as stack, Backgrounds(directory) as backgrounds:
        platform = Platform(stack, backgrounds, plan)
        install(platform.settings)
        yield platform
