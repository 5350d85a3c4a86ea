"""`waitreg connect apply`, `status` and `remove` on a real worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.command_setting import connect_settings, own_sink_file, register
from tests.integration.connect.rows import wait_ids
from tests.support.command import Ended, run_waitreg
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.local.connect_worker import ConnectWorker
from wait_registry.settings.root import Settings


class Commands:
    """Runs `waitreg connect` in a folder of its own."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings

    def __call__(self, *arguments: str | Path) -> Ended:
        return run_waitreg(self._folder, "connect", *map(str, arguments), settings=self._settings)


@pytest.fixture
def connect_command(connect: ConnectWorker, prepared: SettingsFactory, tmp_path: Path) -> Commands:
    return Commands(tmp_path, prepared(connect_settings(connect.url, {})))


def words(ended: Ended) -> list[str]:
    """Return the first word of each line."""
    return [line.split()[0] for line in ended.output.splitlines()]


def test_a_refused_configuration_changes_no_connector(
    connect_command: Commands, connect: ConnectWorker, names: Names, tmp_path: Path
) -> None:
    good = own_sink_file(tmp_path, names("good"))
    bad = own_sink_file(tmp_path, names("bad"), tasks__max="many", batch__size="none")
    refused = connect_command("apply", good, bad)
    assert refused.code == 2
    assert "nothing was changed" in refused.errors
    assert f"{names('bad')} ({bad}): tasks.max: Invalid value many" in refused.errors
    assert "batch.size" in refused.errors
    unknown = connect_command("apply", own_sink_file(tmp_path, names("unknown"), connector__class="no.such.Sink"))
    assert unknown.code == 2
    assert "has no connector class no.such.Sink" in unknown.errors
    assert "It has io.debezium.connector.jdbc.JdbcSinkConnector" in unknown.errors
    secret = connect_command("apply", own_sink_file(tmp_path, names("secret"), connection__password="${file:/no/x:y}"))
    assert (secret.code, "Correct connect.secrets.*" in secret.errors) == (2, True), secret.errors
    made = ("good", "bad", "unknown", "secret")
    assert all(ConnectRest(connect.url).status(names(name)) == {} for name in made)


def test_apply_again_changes_nothing_and_after_remove_it_continues(
    connect_command: Commands,
    connect: ConnectWorker,
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    names: Names,
    tmp_path: Path,
) -> None:
    settings, name = prepared(), names("wait.sink")
    file = own_sink_file(tmp_path, name)
    assert words(connect_command("apply", file)) == ["created", "ok"]
    first = register(topics, settings)
    wait_until(lambda: wait_ids(database, settings) == {first}, what="the first row")

    again = connect_command("apply", file)
    assert (again.code, words(again)) == (0, ["unchanged", "ok"])
    own_sink_file(tmp_path, name, batch__size="77")
    second_sink = connect_command("apply", own_sink_file(tmp_path, names("second.sink")))
    assert (second_sink.code, f"{name} writes" in second_sink.errors) == (2, True), second_sink.errors
    changed = connect_command("apply", file)
    assert (changed.code, words(changed)) == (0, ["changed", "ok"])
    assert "batch.size" in changed.output

    def shown() -> dict[str, object]:
        status = connect_command("status", name, "--json")
        assert status.code == 0, status.errors
        found = json.loads(status.output)["connectors"][0]
        return {name: found[name] for name in ("lag", "running")}

    wait_until(lambda: shown().items() >= {("lag", 0), ("running", True)}, what="a sink that runs and is at the end")
    removed = connect_command("remove", name, names("other"))
    assert (removed.code, words(removed)) == (0, ["removed", "not"])
    assert connect_command("status", name).code == 1

    second = register(topics, settings)
    assert connect_command("apply", file).code == 0
    wait_until(lambda: wait_ids(database, settings) == {first, second}, what="the second row")
    ConnectRest(connect.url).remove(name)
