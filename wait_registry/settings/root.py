"""All settings of all services in one frozen tree."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from wait_registry.settings.connect import ConnectSettings
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.runtime import LogSettings, SparkSettings, TelemetrySettings
from wait_registry.settings.sink import SinkSettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings


class Settings(BaseSettings):
    """Everything that can be set; read it with `wait_registry.settings.loading.load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix="WAITREG_", env_nested_delimiter="__", frozen=True, extra="forbid", validate_default=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **named_others: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what the caller gives and nothing else: the sources are read by `loading`, which misses no name."""
        return (init_settings,)

    kafka: KafkaSettings = Field(KafkaSettings(), description="the Kafka cluster")
    wait: WaitTopicSettings = Field(WaitTopicSettings(), description="the wait topic")
    dead_letter: DeadLetterSettings = Field(DeadLetterSettings(), description="the dead letter topics")
    postgres: PostgresSettings = Field(PostgresSettings(), description="the view's database")
    processor: ProcessorSettings = Field(ProcessorSettings(), description="the processor")
    sink: SinkSettings = Field(SinkSettings(), description="the sink")
    sweeper: SweeperSettings = Field(SweeperSettings(), description="the sweeper")
    connect: ConnectSettings = Field(ConnectSettings(), description="Kafka Connect")
    spark: SparkSettings = Field(SparkSettings(), description="Spark of sink, sweeper and rebuild")
    telemetry: TelemetrySettings = Field(TelemetrySettings(), description="metrics, health and traces")
    log: LogSettings = Field(LogSettings(), description="logs")
