"""Settings of Spark, telemetry and logs."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from wait_registry.settings import Section


class SparkSettings(Section):
    """The Spark session of sink, sweeper and rebuild."""

    master: str = "local[2]"
    """Spark master URL"""
    driver_memory: str = Field("512m", pattern=r"^\d+[mg]$")
    """heap of the driver's JVM"""
    jars_dir: str = ""
    """folder with the Kafka source's jars; by default those of `waitreg jars fetch`"""
    conf: dict[str, str] = Field({}, repr=False)
    """any further Spark properties"""


class TelemetrySettings(Section):
    """The HTTP port with /metrics, /health/live and /health/ready, and traces."""

    host: str = "127.0.0.1"
    """address to listen on; loopback unless you set another"""
    port: int = Field(9464, ge=0, le=65_535)
    """port to listen on; 0 takes a free one"""
    traces: bool = False
    """send OpenTelemetry traces (OTLP/HTTP); needs the extra 'otel'"""
    traces_endpoint: str = Field("", pattern="^(https?://.+)?$")
    """URL that spans are posted to (http://localhost:4318/v1/traces); by default from OTEL_EXPORTER_OTLP_*"""


class LogFormat(StrEnum):
    """How log lines look."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogSettings(Section):
    """Structured logs on standard error."""

    level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    """lowest level written"""
    format: LogFormat = LogFormat.AUTO
    """'json': one object per line; 'console': lines for people; 'auto': the latter on a terminal"""
    error_messages: bool = True
    """log what a handler's error says (500 characters); false if it may quote a record"""
