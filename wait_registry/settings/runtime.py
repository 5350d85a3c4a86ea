"""Settings of Spark, telemetry and logs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from pydantic import Field

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings import Section

MISSING_EXTRA: Final = (
    "telemetry.traces is on, but OpenTelemetry isn't installed: run pip install 'wait-registry[otel]', "
    "or set telemetry.traces=false"
)


class SparkSettings(Section):
    """The Spark session of sink, sweeper and rebuild."""

    master: str = Field("local[2]", description="Spark master URL")
    driver_memory: str = Field("512m", pattern=r"^\d+[mg]$", description="heap of the driver's JVM")
    jars_dir: str = Field(
        "", description="folder with the Kafka source's jars; by default those of `waitreg jars fetch`"
    )
    conf: dict[str, str] = Field({}, repr=False, description="any further Spark properties")


class TelemetrySettings(Section):
    """The HTTP port with /metrics, /health/live and /health/ready, and traces."""

    host: str = Field("127.0.0.1", description="address to listen on; loopback unless you set another")
    port: int = Field(9464, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    traces: bool = Field(False, description="send OpenTelemetry traces (OTLP/HTTP); needs the extra 'otel'")
    traces_endpoint: str = Field(
        "", description="URL that spans are posted to, path included; by default from OTEL_EXPORTER_OTLP_*"
    )


class LogFormat(StrEnum):
    """How log lines look."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogSettings(Section):
    """Structured logs on standard error."""

    level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="lowest level written")
    format: LogFormat = Field(
        LogFormat.AUTO,
        description="'json': one object per line; 'console': lines for people; 'auto': the latter on a terminal",
    )
    error_messages: bool = Field(
        True, description="log what a handler's error says (500 characters); false if it may quote a record"
    )


def telemetry_problems(settings: TelemetrySettings) -> Iterator[Diagnosis]:
    """Yield the problems that prevent traces."""
    if not settings.traces:
        return
    if not _installed():
        yield error(MISSING_EXTRA)
    if settings.traces_endpoint and not settings.traces_endpoint.startswith(("http://", "https://")):
        yield error(
            f"telemetry.traces_endpoint is {settings.traces_endpoint!r}, expected the http(s) URL of an OTLP/HTTP "
            "receiver, path included (http://localhost:4318/v1/traces)"
        )


def _installed() -> bool:
    try:
        return all(importlib.util.find_spec(f"opentelemetry.{part}") for part in ("sdk", "exporter.otlp.proto.http"))
    except ModuleNotFoundError:
        return False
