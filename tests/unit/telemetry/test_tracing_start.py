"""Off, tracing loads nothing; on, settings, variables or packages that prevent it are configuration errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from wait_registry.settings.relations import MISSING_EXTRA, relation_problems
from wait_registry.settings.root import Settings

# In processes of their own, since this one has loaded everything.
HEAD = """
import sys
from wait_registry.errors import ConfigurationError
from wait_registry.settings.relations import relation_problems
from wait_registry.settings.root import Settings
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import start_tracing

def start(**settings):
    try:
        return start_tracing(TelemetrySettings(**settings), "processor")
    except ConfigurationError as error:
        print(error)
"""
LOADED = """
import importlib, json, pkgutil
import processor, sweeper
for package in (processor, sweeper):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
assert start() is None
print(json.dumps(sorted(sys.modules)))
"""
WITHOUT_THE_EXTRA = """
sys.modules["opentelemetry"] = None
print(*(one.message for one in relation_problems(Settings(telemetry={"traces": True}), "sweeper")))
start(traces=True)
"""
WITH_ANOTHER_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
theirs = TracerProvider()
trace.set_tracer_provider(theirs)
tracer = start(traces=True)
assert trace.get_tracer_provider() is theirs
print(tracer.provider.resource.attributes["service.name"])
tracer.stop()
"""


def run(script: str, **variables: str) -> str:
    command, environment = [sys.executable, "-c", HEAD + script], {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr == ""
    return done.stdout


def test_no_tracing_library_is_loaded_while_tracing_is_off() -> None:
    loaded = json.loads(run(LOADED))
    assert "processor.service.traces" in loaded
    assert [name for name in loaded if name.partition(".")[0] == "opentelemetry"] == []


def test_without_its_packages_start_check_and_start_name_the_extra() -> None:
    checked, started = run(WITHOUT_THE_EXTRA).splitlines()
    assert checked == MISSING_EXTRA
    assert started.startswith(MISSING_EXTRA)


def test_a_provider_that_the_process_already_has_is_kept() -> None:
    assert run(WITH_ANOTHER_PROVIDER, OTEL_SERVICE_NAME="shop") == "shop\n"


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5000", "max_export_batch_size"),
        # The SDK reads it while it is imported.
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "abc", "must be a non-negative integer but got abc"),
    ],
)
def test_a_variable_that_the_sdk_refuses_is_a_configuration_error(variable: str, value: str, reason: str) -> None:
    message = run("start(traces=True)", **{variable: value})
    assert message.startswith("OpenTelemetry refuses its settings: ")
    assert reason in message


@pytest.mark.parametrize(("service", "refuses"), [("processor", True), ("sweeper", True), ("sink", False)])
def test_an_endpoint_that_is_no_url_is_refused_by_the_services_that_trace(service: str, refuses: bool) -> None:
    settings = Settings.model_validate({"telemetry": {"traces": True, "traces_endpoint": "collector:4318"}})
    messages = [one.message for one in relation_problems(settings, service) if "traces" in one.message]  # type: ignore[arg-type]
    assert len(messages) == refuses
    assert all("'collector:4318', expected the http(s) URL of an OTLP/HTTP receiver" in one for one in messages)
