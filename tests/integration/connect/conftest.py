"""One Kafka Connect worker per run, against the run's broker; and schemas with an outbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.exporting import Exporting, ExportingFactory
from tests.integration.connect.outbox import Connection
from tests.integration.connect.sinking import Sinking, SinkingFactory
from tests.support.chosen_stack import skips_are_failures
from tests.support.connect_connectors import Connectors
from tests.support.connect_rest import ConnectRest
from tests.support.connect_worker import ConnectWorker, plugin_jar
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.stack import Stack
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.java.jars import CONNECT_JAR_KINDS, jar_directory
from wait_registry.settings.tree import Settings
from waitreg.local.ports import free_ports

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def connect_plugin() -> Path:
    """The plugin that Maven built; without it or the worker's jars, Connect's tests are skipped (CI: fail)."""
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
    own = {"bootstrap.servers": stack.bootstrap_servers, "group.id": Names()("connect")}
    worker = ConnectWorker(directory, free_ports(1)[0], own, plugins=[connect_plugin])
    worker.start()
    yield worker
    worker.kill()


@pytest.fixture
def connectors(connect: ConnectWorker, names: Names, topics: Topics, database: Database) -> Iterator[Connectors]:
    """Connectors of this test's own on the run's worker, removed before their topics and tables."""
    own = Connectors(ConnectRest(connect.url), names)
    yield own
    own.close()


@pytest.fixture
def sinking(connectors: Connectors, prepared: SettingsFactory, topics: Topics, database: Database) -> SinkingFactory:
    """Return a factory of sinks with these settings, none of them started."""
    return lambda overrides: Sinking(connectors, topics, database, prepared(overrides))


@pytest.fixture
def exporting_from(
    connect: ConnectWorker, names: Names, topics: Topics, database: Database
) -> Iterator[ExportingFactory]:
    """Return a factory of sources with these settings, none of them started."""
    made: list[Exporting] = []

    def make(settings: Settings) -> Exporting:
        made.append(Exporting(Connectors(ConnectRest(connect.url), names), topics, settings))
        return made[-1]

    yield make
    for own in reversed(made):
        own.close()


@pytest.fixture
def exporting(exporting_from: ExportingFactory, prepared: SettingsFactory) -> Exporting:
    """The sources over a schema of this test's own, none of them started."""
    return exporting_from(prepared({"connect.settle_s": 0}))


@pytest.fixture
def outbox_settings(settings_for: SettingsFactory, database: Database) -> Settings:
    """Settings with a schema of this test's own, in which a row needn't settle."""
    settings = settings_for({"connect.settle_s": 0})
    database.install(settings)
    return settings


@pytest.fixture
def outbox(outbox_settings: Settings, database: Database) -> Iterator[Connection]:
    """A connection to that schema, which commits each statement."""
    with database.connect(outbox_settings) as opened:
        yield opened
