"""Off, tracing loads nothing; on without its packages, it says which extra to install."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.relations import relation_problems
from wait_registry.settings.root import Settings
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import start_tracing

LOADED = """
import importlib, json, pkgutil, sys
import processor, sweeper
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import start_tracing
for package in (processor, sweeper):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
assert start_tracing(TelemetrySettings(), "processor") is None
print(json.dumps(sorted(sys.modules)))
"""

WITHOUT_THE_EXTRA = """
import sys
sys.modules["opentelemetry"] = None
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.settings.relations import relation_problems
from wait_registry.settings.root import Settings
from wait_registry.telemetry.tracing import start_tracing
settings = Settings.model_validate({"telemetry": {"traces": True}})
print([problem.message for problem in relation_problems(settings, "sweeper")])
start_tracing(TelemetrySettings(traces=True), "processor")
"""

REFUSED = """
from wait_registry.errors import ConfigurationError
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import start_tracing
try:
    start_tracing(TelemetrySettings(traces=True), "processor")
except ConfigurationError as error:
    print(error)
"""

WITH_ANOTHER_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import start_tracing
theirs = TracerProvider()
trace.set_tracer_provider(theirs)
tracer = start_tracing(TelemetrySettings(traces=True, traces_service_name="shop"), "processor")
assert trace.get_tracer_provider() is theirs
print(tracer.provider.resource.attributes["service.name"])
tracer.stop()
"""


def test_no_tracing_library_is_loaded_while_tracing_is_off() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True, text=True, timeout=120)
    loaded = json.loads(run.stdout)
    assert "processor.traces" in loaded
    assert [name for name in loaded if name.partition(".")[0] == "opentelemetry"] == []


def test_switched_on_without_its_packages_it_names_the_extra() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_THE_EXTRA], capture_output=True, text=True, timeout=120)
    assert "wait-registry[otel]" in run.stdout, "the start check"
    assert run.stderr.splitlines()[-1].startswith("wait_registry.errors.ConfigurationError: telemetry.traces is on")


def test_an_endpoint_that_is_no_url_is_refused_by_who_traces() -> None:
    settings = Settings.model_validate({"telemetry": {"traces": True, "traces_endpoint": "collector:4318"}})
    problems = {
        service: [one.message for one in relation_problems(settings, service) if "traces" in one.message]
        for service in ("processor", "sweeper", "sink")
    }
    assert problems["sink"] == []
    for service in ("processor", "sweeper"):
        [message] = problems[service]
        assert "'collector:4318', expected the http(s) URL of an OTLP/HTTP receiver" in message


def test_a_variable_that_the_sdk_refuses_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5000")
    with pytest.raises(ConfigurationError, match="max_export_batch_size"):
        start_tracing(TelemetrySettings(traces=True), "processor")


def test_a_variable_that_the_sdk_refuses_as_it_is_imported_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "abc")
    run = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=120)
    assert run.stdout.startswith("OpenTelemetry refuses its settings"), run.stderr
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be a non-negative integer but got abc" in run.stdout


def test_a_provider_that_the_process_has_already_is_left_alone() -> None:
    run = subprocess.run([sys.executable, "-c", WITH_ANOTHER_PROVIDER], capture_output=True, text=True, timeout=120)
    assert (run.stdout, run.stderr) == ("shop\n", "")
