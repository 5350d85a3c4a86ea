"""A command that can't use its settings, its host or its handler ends with 2 and a sentence, and consumes nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.committed_offsets import committed
from tests.support.database import Database
from tests.support.topics import Topics
from wait_registry.settings.tree import Settings

TAKEN_PORT = "WAITREG_TELEMETRY__PORT"
SLIP = {"WAITREG_KAFKA__LIBRDKAFKA": '{"sesion.timeout.ms": 6000}'}
NO_PROPERTY = 'No such configuration property: "sesion.timeout.ms". Correct kafka.librdkafka'
CONTRADICTION = {"WAITREG_KAFKA__LIBRDKAFKA": '{"session.timeout.ms": 60000, "max.poll.interval.ms": 30000}'}
SHOP = {
    "WAITREG_PROCESSOR__GROUP": "shop",
    "WAITREG_PROCESSOR__TOPICS": "orders",
    "WAITREG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
}
OPENS = """
    async def __aexit__(self, *of_no_interest):
        return None

    async def handle(self, record):
        return None
"""
MODULES = {
    "missing_import": "import json\n\nimport no_such_library\n\nasync def handle(record):\n    return None\n",
    "no_syntax": "async def handle(record)\n    return None\n",
    "no_environment": "import os\nURL = os.environ['SHOP_URL']\n\nasync def handle(record):\n    return None\n",
    "never_opens": (
        f"class Charge:\n    async def __aenter__(self):\n        raise ConnectionError('the pool is closed')\n{OPENS}"
    ),
    "never_made": (
        "class Charge:\n    def __init__(self):\n        self.url = {}['SHOP_URL']\n\n"
        f"    async def __aenter__(self):\n        return self\n{OPENS}"
    ),
}


def java(folder: Path, version: str | None) -> str:
    """Return a Java home whose `java` prints this version, or that has no `java`."""
    (folder / "jdk" / "bin").mkdir(parents=True)
    if version is not None:
        command = folder / "jdk" / "bin" / "java"
        command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        command.chmod(0o755)
    return str(folder / "jdk")


def refused(folder: Path, command: str, settings: Settings | None, variables: Mapping[str, str]) -> str:
    """Run a command that must end with 2; return what it printed."""
    ended = run_waitreg(folder, *command.split(), settings=settings, variables=variables)
    printed = ended.output + ended.errors
    assert ended.code == 2, printed
    assert "Traceback" not in printed
    return printed


@pytest.fixture
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield str(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        ("processor", SLIP, NO_PROPERTY),
        ("sweeper --once", SLIP, NO_PROPERTY),
        ("doctor", SLIP, NO_PROPERTY),
        ("processor", CONTRADICTION, "`max.poll.interval.ms`must be >= `session.timeout.ms`"),
        ("processor", {TAKEN_PORT: ""}, "Set telemetry.port to a free one"),
        ("sink", {TAKEN_PORT: ""}, "Set telemetry.port to a free one"),
        ("sweeper", {TAKEN_PORT: ""}, "Set telemetry.port to a free one"),
        ("sink", {"JAVA_HOME": None}, "no java in JAVA_HOME"),
        ("sweeper", {"JAVA_HOME": "11.0.2"}, "is Java 11: install Java 17 or newer"),
        ("demo", {"JAVA_HOME": "1.8.0_392"}, "is Java 8: install Java 17 or newer"),
        ("sink", {"JAVA_HOME": ""}, "says no version: exit status 0, 'openjdk"),
    ],
)
def test_a_command_that_cannot_run_here_says_what_to_correct(
    command: str, variables: dict[str, str], said: str, taken_port: str, settings_for: SettingsFactory,
    topics: Topics, database: Database, here: Path,
) -> None:  # fmt: skip
    settings = settings_for({"processor.handler": "shop:handle"})
    topics.create_own(settings)
    database.install(settings)
    given = dict(variables)
    if "JAVA_HOME" in given:
        given["JAVA_HOME"] = java(here, given["JAVA_HOME"])
    if TAKEN_PORT in given:
        given[TAKEN_PORT] = taken_port
    assert said in refused(here, command, settings if command != "demo" else None, given)


def test_a_processor_needs_no_java(here: Path) -> None:
    handler = {"WAITREG_PROCESSOR__HANDLER": "shop:handle", "WAITREG_KAFKA__REQUEST_TIMEOUT_S": "1"}
    variables = {**SHOP, **handler, "JAVA_HOME": java(here, None), "WAITREG_TELEMETRY__PORT": "0"}
    ended = run_waitreg(here, "doctor", "processor", variables=variables)
    assert "java" not in (ended.output + ended.errors).lower()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with handlers that can't be used."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ("nowhere:handle", "No module named 'nowhere'. It is looked up in the current directory and on PYTHONPATH"),
        ("missing_import:handle", "No module named 'no_such_library' (missing_import.py:3: import no_such_library)"),
        ("no_syntax:handle", "(no_syntax.py:1: async def handle(record))"),
        ("no_environment:handle", "KeyError: 'SHOP_URL' (no_environment.py:2: URL = os.environ['SHOP_URL'])"),
        ("never_made:Charge", "KeyError: 'SHOP_URL' (never_made.py:3: self.url = {}['SHOP_URL'])"),
    ],
)
def test_a_handler_that_cannot_be_loaded_is_refused_first(handler: str, said: str, modules: Path) -> None:
    assert said in refused(modules, "processor", None, {**SHOP, "WAITREG_PROCESSOR__HANDLER": handler})


def test_a_handler_that_never_opens_ends_it_first(prepared: SettingsFactory, topics: Topics, modules: Path) -> None:
    settings = prepared({"processor.handler": "never_opens:Charge"}, 1)
    topics.produce(settings.processor.topics[0], [b"value"])
    assert (
        "opening it (__aenter__) failed: ConnectionError: the pool is closed "
        "(never_opens.py:3: raise ConnectionError('the pool is closed'))"
    ) in refused(modules, "processor", settings, {})
    assert topics.read(settings.wait.topic) == []
    assert committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1) == [-1]
