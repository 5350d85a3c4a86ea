"""All settings of all services in one frozen tree."""

from __future__ import annotations

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from wait_registry.settings.alerts import AlertsSettings
from wait_registry.settings.connect import ConnectSettings
from wait_registry.settings.console import ConsoleSettings
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.redrive import OperationsSettings, RedriveSettings
from wait_registry.settings.runtime import LogSettings, SparkSettings, TelemetrySettings
from wait_registry.settings.sink import SinkSettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings


class Settings(BaseSettings):
    """Everything that can be set; read it with `wait_registry.settings.loading.load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix="WAITREG_",
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **named_others: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read no source here: `load_settings` gives its own, and `Settings()` in code means the defaults."""
        return (init_settings,)

    kafka: KafkaSettings = KafkaSettings()
    """the Kafka cluster"""
    wait: WaitTopicSettings = WaitTopicSettings()
    """the wait topic"""
    dead_letter: DeadLetterSettings = DeadLetterSettings()
    """the dead letter topics"""
    operations: OperationsSettings = OperationsSettings()
    """the operations topic"""
    redrive: RedriveSettings = RedriveSettings()
    """redrive of dead letters"""
    postgres: PostgresSettings = PostgresSettings()
    """the database with the tables"""
    processor: ProcessorSettings = ProcessorSettings()
    """the processor"""
    sink: SinkSettings = SinkSettings()
    """the sink"""
    sweeper: SweeperSettings = SweeperSettings()
    """the sweeper"""
    alerts: AlertsSettings = AlertsSettings()
    """alerts by webhook"""
    console: ConsoleSettings = ConsoleSettings()
    """the web console"""
    connect: ConnectSettings = ConnectSettings()
    """Kafka Connect"""
    spark: SparkSettings = SparkSettings()
    """Spark of sink, sweeper and rebuild"""
    telemetry: TelemetrySettings = TelemetrySettings()
    """metrics, health and traces"""
    log: LogSettings = LogSettings()
    """logs"""


def unresolved_placeholders(settings: Settings) -> list[str]:
    """Return the settings that ``dead_letter.topic`` refers to and that aren't set; none if its topics are known."""
    template, processor = settings.dead_letter.topic, settings.processor
    values = {"{topic}": ("processor.topics", processor.topics), "{group}": ("processor.group", processor.group)}
    return [name for placeholder, (name, value) in values.items() if placeholder in template and not value]
