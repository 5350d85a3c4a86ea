"""One Kafka Connect worker a run, against the run's broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chosen_stack import skips_are_failures
from tests.support.naming import Names
from tests.support.stack import Stack
from wait_registry.errors import ConfigurationError
from wait_registry.jvm import CONNECT_JAR_KINDS, jar_directory
from waitreg.embedded.connect_worker import ConnectWorker, plugin_jar
from waitreg.embedded.ports import free_ports

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def connect_plugin() -> Path:
    """The plugin that Maven built; without it, or without the worker's jars, Connect's tests are skipped (CI: fail)."""
    try:
        for kind in CONNECT_JAR_KINDS:
            jar_directory(kind)
        return plugin_jar(ROOT)
    except ConfigurationError as problem:
        if skips_are_failures():
            raise
        pytest.skip(f"Kafka Connect NOT TESTED: {problem}")


@pytest.fixture(scope="session")
def connect(stack: Stack, connect_plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectWorker]:
    """The worker of the run; a test that kills it starts it again, and removes the connectors it made."""
    directory = tmp_path_factory.mktemp("connect")
    worker = ConnectWorker(
        directory, free_ports(1)[0], stack.bootstrap_servers, plugins=[connect_plugin], group=Names()("connect")
    )
    worker.start()
    yield worker
    worker.kill()
