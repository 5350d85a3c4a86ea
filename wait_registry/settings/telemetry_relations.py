"""Relations of the tracing settings: installed packages and a usable address."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Final

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings.runtime import TelemetrySettings

MISSING_EXTRA: Final = (
    "telemetry.traces is on, but OpenTelemetry isn't installed: run pip install 'wait-registry[otel]', "
    "or set telemetry.traces=false"
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
