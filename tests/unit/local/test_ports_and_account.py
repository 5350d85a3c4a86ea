"""What a local server needs: free ports, a folder, an account; a service reads the settings of its starter."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from pydantic import SecretStr

from sink.history.directory import HistoryDirectory
from tests.support.own_postgres import reachable
from wait_registry.errors import ConfigurationError
from wait_registry.local.account import unprivileged_account, unreachable_part
from wait_registry.local.environment import as_environment
from wait_registry.local.ports import HIGHEST, LOOPBACK, LOWEST, free_ports, is_free
from wait_registry.local.stack import EmbeddedStack
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.loading import load_settings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.root import Settings


def test_ports_are_different_free_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(LOWEST <= port < HIGHEST and is_free(port) for port in ports)


def test_a_held_port_is_passed_over_but_a_server_may_bind_it() -> None:
    (port,) = free_ports(1)
    with pytest.raises(OSError, match="in use"), socket.socket() as other:
        other.bind((LOOPBACK, port))
    with socket.create_server((LOOPBACK, port)):
        assert not is_free(port)


def test_more_ports_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ports were free"):
        free_ports(HIGHEST - LOWEST + 1)


def test_only_root_changes_to_an_unprivileged_account() -> None:
    account = unprivileged_account()
    if os.geteuid() == 0:
        assert account is not None
        assert account.uid != 0
    else:
        assert account is None


def test_the_outermost_closed_folder_is_named(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    closed = open_folder / "closed"
    inner = closed / "inner"
    inner.mkdir(parents=True)
    reachable(tmp_path)
    for folder in (open_folder, inner):
        folder.chmod(0o755)
    if unreachable_part(tmp_path) is not None:
        pytest.skip("this host keeps its temporary folders closed to other users")
    closed.chmod(0o700)
    assert unreachable_part(open_folder) is None
    assert unreachable_part(inner) == closed.resolve()


@pytest.mark.parametrize("path", ["/dev/null/x", "/proc/x"])
def test_a_folder_that_cannot_be_created_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"can't write to {path}.*: (Not a directory|No such file)"):
        EmbeddedStack(Path(path)).start()
    with (
        pytest.raises(ConfigurationError, match=rf"can't write to {path}.*: (Not a directory|No such file)"),
        HistoryDirectory(Path(path)).locked(),
    ):
        pass


TOML = """
[processor]
ttl_s = 600
topics = ["orders", "payments"]

[[processor.routes]]
match = { topic = "orders" }
handler = "shop:orders"
max_in_flight = 3

[[alerts.rule]]
name = "open"
filter = ["group=shop", "state=open"]
for = "5m"
above = 10

[alerts.webhook]
url = "http://hook.example.com/secret"
"""


def test_settings_come_through_the_environment_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.toml").write_text(TOML)
    settings = load_settings(config_file=tmp_path / "given.toml", env={})
    assert settings.alerts.rule[0].hold == "5m" and settings.processor.routes[0].max_in_flight == 3
    assert load_settings(env=as_environment(settings)) == settings


def test_a_process_with_these_variables_reads_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no settings file of this checkout
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers="somewhere:1", librdkafka={"session.timeout.ms": 6000}),
        postgres=PostgresSettings(url=SecretStr("postgresql://u:p@h/d"), schema="own"),
        processor=ProcessorSettings(topics=("a", "b"), group="g", ttl_s=13.5, max_in_flight=7),
    )
    assert load_settings(env=as_environment(settings)) == settings
