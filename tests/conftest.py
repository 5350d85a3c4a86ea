"""Fixtures: a real broker and a real Postgres per run, a Spark session per worker, topics and a schema per test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from tests import tiers
from tests.support.chosen_stack import CONTAINERS, EMBEDDED, ChosenStack, is_for_want_of_an_engine, skips_are_failures
from tests.support.command import Ended
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.own_postgres import reachable
from tests.support.processes import Services
from tests.support.quick_jvm import COMPILER_AND_COLLECTOR, quick_jvm
from tests.support.secured_broker import SecuredBroker, secured_broker_in
from tests.support.secured_postgres import SecuredPostgres, secured_postgres_in
from tests.support.settings import settings_against
from tests.support.stack import KAFKA_VARIABLE, POSTGRES_VARIABLE, GivenStack, OwnStack, Stack
from tests.support.topics import Topics
from wait_registry.settings.tree import Settings
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.environment import as_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

ROOT = Path(__file__).parents[1]
PURE = ("tests/contract", "tests/fuzz", "tests/unit")
# The exit status of a run that skipped what it must not skip.
SKIPPED = 6

# `make mutants` starts one stack for its many runs of a single test.
GIVEN_STACK = GivenStack.of(os.environ)

# Spark's Python workers and service processes import this checkout, and plant the mutant of the run.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ |= quick_jvm()
EmbeddedBroker.jvm_options = tuple(COMPILER_AND_COLLECTOR.split())
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


CHOSEN: pytest.StashKey[ChosenStack] = pytest.StashKey()
SHARED: pytest.StashKey[AbstractContextManager[OwnStack]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tier``, ``--stack`` and ``--screenshots``."""
    parser.addoption("--tier", choices=tiers.TIERS, help="run the tests of this tier (tests/tiers.toml); default: all")
    parser.addoption(
        "--stack",
        choices=(EMBEDDED, CONTAINERS),
        default=EMBEDDED,
        help="where Kafka and Postgres of the tests run: as child processes, or in containers of the official images",
    )
    parser.addoption(
        "--screenshots",
        action="store_true",
        help="replace the pictures of the console in docs/img (`make screenshots`)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the stack before anything starts; pytest-xdist's workers share one broker and one Postgres."""
    chosen = ChosenStack(config.getoption("--stack"), GIVEN_STACK)
    config.stash[CHOSEN] = chosen
    if chosen.kind == EMBEDDED and config.getoption("numprocesses", None):
        running: Stack | None = GIVEN_STACK
        if running is None:
            shared = config.stash[SHARED] = chosen.to_break()
            running = shared.__enter__()
        os.environ |= {KAFKA_VARIABLE: running.bootstrap_servers, POSTGRES_VARIABLE: running.postgres_url}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave what holds no test of the chosen tier unread: collecting everything costs each worker 17 CPU seconds."""
    tier = config.getoption("tier")
    if tier is None or not collection_path.is_relative_to(ROOT / "tests"):
        return None
    return tier not in tiers.tiers_below(collection_path.relative_to(ROOT).as_posix()) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen tier; the pure ones, which are short, come last and fill the end of the run."""
    tier = config.getoption("tier")
    if tier is not None:
        if missing := tiers.missing_cases({item.nodeid for item in items}):
            raise pytest.UsageError(f"{tiers.FILE.name} names tests that do not exist: {', '.join(missing)}")
        left_out = [item for item in items if tiers.tier_of(item.nodeid) != tier]
        config.hook.pytest_deselected(items=left_out)
        excluded = set(left_out)
        items[:] = [item for item in items if item not in excluded]
    items.sort(key=lambda item: item.nodeid.startswith(PURE))


class ServerScheduling(LoadFileScheduling):
    """Give the tests of a file to one worker, and those of all files that share a server too."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return tiers.server_of(file) or file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ServerScheduling:
    """Return how the workers of pytest-xdist share the tests."""
    return ServerScheduling(config, log)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the workers' stack."""
    shared = config.stash.get(SHARED, None)
    if shared is not None:
        shared.__exit__(None, None, None)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which stack it is."""
    return config.stash[CHOSEN].header()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:
    """Say in the last line when the wanted stack wasn't there; on a CI machine that is a failure.

    The fast tier skips nothing: what it needs is there after `make setup jars`.
    """
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    reports = reporter.getreports("skipped")
    if reports and session.config.getoption("tier") == tiers.FAST:
        reporter.write_line("the fast tier must not skip a test: move it to another tier, or fix it", red=True)
        session.exitstatus = SKIPPED
    skipped = sum(is_for_want_of_an_engine(str(report.longrepr)) for report in reports)
    if skipped == 0:
        return
    reporter.write_line(session.config.stash[CHOSEN].not_tested(skipped), red=True, bold=True)
    if exitstatus == pytest.ExitCode.OK and skips_are_failures():
        session.exitstatus = SKIPPED


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config) -> Iterator[Stack]:
    """The broker and the Postgres of the run; a test that stops or breaks one takes `own_stack`."""
    with pytestconfig.stash[CHOSEN].for_the_run() as running:
        yield running


@pytest.fixture(scope="session")
def breakable(pytestconfig: pytest.Config) -> Iterator[OwnStack]:
    """A second broker and Postgres, started when the first test wants to break them."""
    with pytestconfig.stash[CHOSEN].to_break() as running:
        yield running


@pytest.fixture
def own_stack(breakable: OwnStack) -> Iterator[OwnStack]:
    """A broker and a Postgres that no other test uses meanwhile, to be stopped, killed and paused; fixed afterwards."""
    yield breakable
    for server in (breakable.broker, breakable.postgres):
        (server.resume if server.running else server.start)()


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker of the run that asks for users, certificates and rights, started when the first test wants it."""
    with secured_broker_in(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="session")
def secured_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredPostgres]:
    """A Postgres of the run that asks for certificates and passwords, started when the first test wants it."""
    with secured_postgres_in(reachable(tmp_path_factory.mktemp("secured-postgres"))) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(stack: Stack) -> str:
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
def database(stack: Stack) -> Iterator[Database]:
    """The run's Postgres, in a schema of this test's own."""
    own = Database(stack.postgres_url)
    yield own
    own.close()


@pytest.fixture
def settings_for(stack: Stack, names: Names) -> SettingsFactory:
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


@pytest.fixture(autouse=True, scope="session")
def _terminal() -> Iterator[None]:
    """Give every test, and every process that one starts, a terminal of 80 columns: tables go by its width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        yield


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Starts `waitreg` processes; all are killed when the test ends."""
    own = Services(tmp_path)
    yield own
    own.close()


RunHere = Callable[..., Ended]


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunHere:
    """Return what runs `waitreg` in this process: settings first, then the command line."""
    from waitreg.main import main

    monkeypatch.chdir(tmp_path)

    def run(settings: Settings, *arguments: str) -> Ended:
        for name, value in as_environment(settings).items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = main(arguments)
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def spark(stack: Stack) -> Iterator[SparkSession]:
    """The Spark session of the run, made when the first test asks for it."""
    from wait_registry.spark.session import spark_session

    session = spark_session(settings_against(stack.bootstrap_servers, stack.postgres_url, Names()), "tests")
    yield session
    session.stop()
