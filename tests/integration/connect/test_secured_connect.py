"""Worker, sinks and sources over TLS with SASL, each a user with its own permissions; no secret is shown.

Certificates are PEM text in the connectors' configuration, passwords are in a file of the worker's (ConfigProvider).
"""

from __future__ import annotations

import secrets
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sweeper.scenario import Scenario
from tests.support.connect_connectors import Connectors, Role, our_connector, own_files
from tests.support.connect_rest import ConnectRest
from tests.support.connect_worker import ConnectWorker
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.rights import grant_sink, grant_source, grant_worker
from tests.support.secured_broker import SecuredBroker
from tests.support.settings import settings_against
from tests.support.stack import Stack
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.kafka.security import java_security
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector
from waitreg.local.ports import free_ports

pytestmark = pytest.mark.timeout(300)

DEADLINE_S = 120.0
SETTINGS: Mapping[str, Any] = {
    "wait.partitions": 2,
    "wait.skew_allowance_s": 0,
    "connect.settle_s": 0,
    "sink.kind": "connect",
}
QUICK = {"heartbeat.interval.ms": "500"}
# Postgres doesn't ask for it here, but the worker has it like a real one.
POSTGRES_PASSWORD = secrets.token_hex(12)


class SecuredConnect:
    """A worker on the secured broker, and users for its connectors."""

    def __init__(self, secured: SecuredBroker, postgres_url: str, plugin: Path, directory: Path) -> None:
        self.names = Names()
        self.secured = secured
        self._postgres_url = postgres_url
        self.passwords: dict[str, str] = {}
        self.given = [POSTGRES_PASSWORD]
        self._file = directory / "passwords.properties"
        worker = self.user("worker")
        grant_worker(secured, worker, self.names("connect"))
        self.worker = ConnectWorker(
            directory / "worker",
            free_ports(1)[0],
            {
                "bootstrap.servers": secured.address("SASL_SSL"),
                "group.id": self.names("connect"),
                **self._security(worker),
            },
            plugins=[plugin],
            environment={"POSTGRES_PASSWORD": POSTGRES_PASSWORD},
        )
        self.rest = ConnectRest(self.worker.url)
        self.running = Connectors(self.rest, self.names)
        self.topics = Topics(secured.operator)
        self.database = Database(postgres_url)
        self.operator = settings_against(secured.operator, postgres_url, self.names, SETTINGS)
        self.topics.create_own(self.operator)
        self.database.install(self.operator)

    def connectors(self, role: Role, *, wrong_password: str = "") -> list[Connector]:
        """Return our connectors of a role as a user of their own, whose password in the worker's file may be wrong."""
        user = self.user(f"mistaken-{role}" if wrong_password else role, given=wrong_password)
        settings = self.settings(user)
        found = [our_connector(path, settings) for path in own_files(role, "debezium")]
        return [self._of(user, connector) for connector in found]

    def user(self, name: str, given: str = "") -> str:
        """Return a user, created at the first call; ``given`` is its password in the worker's file."""
        user = f"{self.names.prefix}-{name}"
        if user not in self.passwords:
            self.passwords[user] = self.secured.add_user(user)
            with self._file.open("a") as passwords:
                passwords.write(f"{user}={given or self.passwords[user]}\n")
            self.given.append(given or self.passwords[user])
        return user

    def settings(self, user: str) -> Settings:
        """Return settings with a user's password."""
        security = self.secured.security("SASL_SSL", user, self.passwords[user])
        return settings_against(self.secured.operator, self._postgres_url, self.names, {**SETTINGS, **security})

    def start(self, connectors: list[Connector]) -> None:
        """Create connectors and wait until they run."""
        for connector in connectors:
            self.rest.put(connector.name, connector.config)
        for connector in connectors:
            self.running.wait_running(connector.name)

    def close(self) -> None:
        """End the worker; users and rights go with the broker."""
        self.worker.kill()
        self.topics.close()
        self.database.close()

    def _of(self, user: str, connector: Connector) -> Connector:
        quick = {name: value for name, value in QUICK.items() if name in connector.config}
        own = {
            f"{client}.override.{name}": value
            for client in ("consumer", "producer", "admin")
            for name, value in self._security(user).items()
        }
        return Connector(f"{user}.{connector.name}", {**own, **connector.config, **quick}, connector.origin)

    def _security(self, user: str) -> Mapping[str, str]:
        """Return a user's properties of a Java client, with a reference to the password."""
        properties = java_security(self.settings(user).kafka)
        reference = f"${{file:{self._file}:{user}}}"
        return {name: value.replace(self.passwords[user], reference) for name, value in properties.items()}


@pytest.fixture(scope="module")
def secured_connect(
    secured: SecuredBroker, stack: Stack, connect_plugin: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredConnect]:
    """A worker on the secured broker."""
    own = SecuredConnect(secured, stack.postgres_url, connect_plugin, tmp_path_factory.mktemp("secured-connect"))
    try:
        own.worker.start()
        yield own
    finally:
        own.close()


@pytest.mark.guarantee("C.9")
def test_sink_outbox_and_source_work_over_tls_with_own_permissions(secured_connect: SecuredConnect) -> None:
    at, settings = secured_connect, secured_connect.operator
    log = Scenario(settings, at.topics, at.database)
    expired, resolved = log.register([log.wait_record(number) for number in range(2)])
    log.resolve([resolved])
    sinks, sources = at.connectors("sink"), at.connectors("source")
    grant_sink(at.secured, at.user("sink"), settings, sinks)
    grant_source(at.secured, at.user("source"), settings, at.names("connect"), sources)
    at.start(sinks)
    shown = "select wait_expiration_uuid from wait"
    wait_until(lambda: at.database.rows(settings, shown) == [(expired.wait_id,)], DEADLINE_S, "the open row")
    at.start(sources)
    wait_until(lambda: at.database.rows(settings, shown) == [], DEADLINE_S, "the end of the row")
    [letter] = log.dead_letters()
    assert (letter.text("WAIT_EXPIRATION_UUID"), letter.value) == (expired.wait_id, b"value")
    last = {record.key: record for record in log.read_wait()}
    assert last[expired.wait_id.encode()].headers == (("WAIT_OUTCOME", b"expired"),)
    assert_no_secret(at)


@pytest.mark.parametrize("role", ["sink", "source"])
def test_a_wrong_password_fails_the_connector(secured_connect: SecuredConnect, role: Role) -> None:
    wrong = secrets.token_hex(12)
    connector = secured_connect.connectors(role, wrong_password=wrong)[0]
    secured_connect.rest.put(connector.name, connector.config)
    trace = secured_connect.running.wait_failed(connector.name)
    secured_connect.rest.remove(connector.name)
    assert "SaslAuthenticationException" in trace, trace
    assert wrong not in trace
    assert_no_secret(secured_connect)


def assert_no_secret(at: SecuredConnect) -> None:
    """Look for every password in what the REST API answers and in the worker's log."""
    answers = {"the log": at.worker.log.read_text("utf-8", errors="replace")}
    with urllib.request.urlopen(f"{at.rest.url}/connectors?expand=info&expand=status", timeout=30) as response:
        answers["the REST API"] = response.read().decode()
    for where, text in answers.items():
        assert not [secret for secret in at.given if secret in text], f"a password is in {where}"
