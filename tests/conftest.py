"""Fixtures: one real broker, one real Postgres and one Spark session a run; fresh topics and a fresh schema a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.support.certificates import openssl_is_there
from tests.support.database import Database
from tests.support.given_stack import GivenStack
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.secured_broker import SecuredBroker
from tests.support.settings import settings_against
from tests.support.topics import Topics
from wait_registry.settings.root import Settings
from waitreg.embedded.stack import EmbeddedStack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]

# `make mutants` starts one stack for its many runs of a single test.
GIVEN_STACK = GivenStack.of(os.environ)

# Spark's Python workers and service processes import this checkout, whichever one is installed.
os.environ["PYTHONPATH"] = str(ROOT)
for variable in [name for name in os.environ if name.startswith("WAITREG_")]:
    del os.environ[variable]

# No deadline: how long an example takes is this machine's business.
hypothesis.settings.register_profile("suite", deadline=None)
# For runs that only ask whether a test fails: the same examples each time, and none made smaller.
hypothesis.settings.register_profile(
    "verdict", deadline=None, derandomize=True, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
)
hypothesis.settings.load_profile("suite")

SettingsFactory = Callable[..., Settings]


@pytest.fixture(scope="session")
def stack() -> Iterator[EmbeddedStack | GivenStack]:
    """The broker and the Postgres of the run; a test that stops or breaks one takes `own_stack`."""
    if GIVEN_STACK is not None:
        yield GIVEN_STACK
        return
    with EmbeddedStack(postgres_settings={"fsync": "off"}) as running:
        yield running


@pytest.fixture
def own_stack() -> Iterator[EmbeddedStack]:
    """A broker and a Postgres for one test alone, to be stopped, killed and paused (ready in about 3 s)."""
    with EmbeddedStack(postgres_settings={"fsync": "off"}) as running:
        yield running


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker of the run that asks for users, certificates and rights, started when the first test wants it."""
    if not openssl_is_there():
        pytest.skip("no `openssl` command here to make certificates with")
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(stack: EmbeddedStack) -> str:
    """The broker's address."""
    return stack.bootstrap_servers


@pytest.fixture
def names() -> Names:
    """Names of this test's own."""
    return Names()


@pytest.fixture
def topics(kafka: str) -> Iterator[Topics]:
    """Topics of this test's own."""
    own = Topics(kafka)
    yield own
    own.close()


@pytest.fixture
def database(stack: EmbeddedStack) -> Iterator[Database]:
    """The run's Postgres, in a schema of this test's own."""
    own = Database(stack.postgres_url)
    yield own
    own.close()


@pytest.fixture
def settings_for(stack: EmbeddedStack, names: Names) -> SettingsFactory:
    """Return a factory of settings against the run's stack; nothing is created by it."""

    def make(overrides: Mapping[str, Any] | None = None) -> Settings:
        return settings_against(stack.bootstrap_servers, stack.postgres_url, names, overrides)

    return make


@pytest.fixture
def prepared(settings_for: SettingsFactory, topics: Topics, database: Database) -> SettingsFactory:
    """Return a factory of settings whose wait, dead letter and input topics and whose schema exist."""

    def make(overrides: Mapping[str, Any] | None = None, input_partitions: int = 3) -> Settings:
        settings = settings_for(overrides)
        topics.create_own(settings, input_partitions)
        database.install(settings)
        return settings

    return make


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Starts `waitreg` processes; all are killed when the test ends."""
    own = Services(tmp_path)
    yield own
    own.close()


@pytest.fixture(scope="session")
def spark(stack: EmbeddedStack) -> Iterator[SparkSession]:
    """The Spark session of the run, made when the first test asks for it."""
    from wait_registry.spark.session import spark_session

    session = spark_session(settings_against(stack.bootstrap_servers, stack.postgres_url, Names()), "tests")
    yield session
    session.stop()
