"""Java that is missing or too old, a port that is taken: a sentence with what to do, and exit code 2."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database
from tests.support.topics import Topics

SHOP = {
    "WAITREG_PROCESSOR__GROUP": "shop",
    "WAITREG_PROCESSOR__TOPICS": "orders",
    "WAITREG_PROCESSOR__HANDLER": "shop:handle",
    "WAITREG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
}


def java_home(folder: Path, version: str | None) -> Path:
    """Make a Java home with a `java` that prints this version, or with none."""
    home = folder / "jdk"
    (home / "bin").mkdir(parents=True)
    if version is not None:
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("service", "version", "said"),
    [
        ("sink", None, "no java in JAVA_HOME"),
        ("sweeper", "11.0.2", "is Java 11: install Java 17 or newer"),
        ("demo", "1.8.0_392", "is Java 8: install Java 17 or newer"),
    ],
)
def test_a_service_without_a_java_that_it_can_use_says_so(
    service: str, version: str | None, said: str, settings_for: SettingsFactory, topics: Topics, database: Database,
    here: Path,
) -> None:  # fmt: skip
    settings = settings_for()
    topics.create_own(settings)
    database.install(settings)
    variables = {"JAVA_HOME": str(java_home(here, version))}
    ended = run_waitreg(here, service, settings=settings if service != "demo" else None, variables=variables)
    assert ended.code == 2, ended.output + ended.errors
    assert said in ended.errors
    assert "Traceback" not in ended.errors


def test_a_processor_needs_no_java(here: Path) -> None:
    variables = {**SHOP, "JAVA_HOME": str(java_home(here, None)), "WAITREG_TELEMETRY__PORT": "0"}
    ended = run_waitreg(here, "doctor", "processor", variables={**variables, "WAITREG_KAFKA__REQUEST_TIMEOUT_S": "1"})
    assert "java" not in (ended.output + ended.errors).lower()


@pytest.mark.parametrize("service", ["processor", "sink", "sweeper"])
def test_a_taken_port_names_the_setting(
    service: str, settings_for: SettingsFactory, topics: Topics, database: Database, here: Path
) -> None:
    settings = settings_for({"processor.handler": "shop:handle"})
    topics.create_own(settings)
    database.install(settings)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        variables = {"WAITREG_TELEMETRY__PORT": str(taken.getsockname()[1])}
        ended = run_waitreg(here, service, settings=settings, variables=variables)
    assert ended.code == 2, ended.errors
    assert "Set telemetry.port to a free one" in ended.errors
    assert "Traceback" not in ended.errors
