"""What a local server needs: free ports, a folder, an account, the committed jars, and the settings of its starter."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from sink.history.directory import HistoryDirectory
from tests.support.own_postgres import reachable
from wait_registry.errors import ConfigurationError
from wait_registry.java.fetching import fetch_jars, ivy_command
from wait_registry.java.jars import JAR_KINDS, JarKind, committed_sums, jar_directory, jar_lists, jars_home, java_major
from wait_registry.settings.loading import load_settings
from waitreg.local.account import unprivileged_account, unreachable_part
from waitreg.local.environment import as_environment
from waitreg.local.ports import HIGHEST, LOOPBACK, LOWEST, free_ports, is_free
from waitreg.local.stack import EmbeddedStack


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
[kafka.librdkafka]
"session.timeout.ms" = 6000

[postgres]
url = "postgresql://u:p@h/d"
schema = "own"

[processor]
ttl_s = 13.5
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


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of Spark's jars, to be damaged."""
    return Path(shutil.copytree(jars_home() / "spark", tmp_path / "spark"))


@pytest.mark.parametrize("kind", JAR_KINDS)
def test_the_fetched_jars_are_the_committed_ones(kind: JarKind) -> None:
    directory = jar_directory(kind)
    assert {path.name for path in directory.iterdir()} == committed_sums(kind).keys()


def changed(jar: Path) -> None:
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "jar", "said"),
    [
        (changed, "kafka-clients-3.9.2.jar", r"was changed.*waitreg jars fetch"),
        (Path.unlink, "commons-pool2-2.13.1.jar", r"is missing \(4 others are there\)"),
        (Path.touch, "stowaway-1.0.jar", "is not among the 5 jars expected"),
    ],
)
def test_only_the_committed_jars_are_taken(copied: Path, damage: Callable[[Path], None], jar: str, said: str) -> None:
    damage(copied / jar)
    with pytest.raises(ConfigurationError, match=f"{re.escape(jar)} {said}"):
        jar_directory("spark", str(copied))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is missing"):
        jar_directory("spark", str(tmp_path / "nowhere"))


def test_fetching_what_is_there_changes_nothing_and_runs_no_java(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (copied / "README").write_text("words")
    before = {path: path.stat().st_mtime_ns for path in copied.iterdir()}
    assert fetch_jars(copied.parent, ["spark"]) == []
    assert {path: path.stat().st_mtime_ns for path in copied.iterdir()} == before


def test_ivy_asks_for_no_more_and_takes_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text("<ivysettings/>")
    monkeypatch.setenv("IVY_SETTINGS", str(settings))
    command = ivy_command(["broker"], tmp_path, jar_lists())
    assert command[command.index("-settings") + 1] == str(settings)
    assert command[command.index("-confs") + 1 :] == ["broker"]


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21"', 21),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_the_major_version_of_java_is_read_from_what_it_prints(printed: str, major: int | None) -> None:
    assert java_major(printed) == major
