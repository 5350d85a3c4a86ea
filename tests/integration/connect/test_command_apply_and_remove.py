"""`waitreg connect apply`, `status` and `remove` on a real worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.commands import Commands
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, wait_record
from tests.support.command import Ended
from tests.support.connect_connectors import Connectors
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until


@pytest.fixture
def waitreg_connect(connectors: Connectors, prepared: SettingsFactory, names: Names, tmp_path: Path) -> Commands:
    settings = prepared({"connect.url": connectors.rest.url, "sink.kind": "connect"})
    return Commands(tmp_path, settings, names)


def words(ended: Ended) -> list[str]:
    """Return the first word of each line."""
    return [line.split()[0] for line in ended.output.splitlines()]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tasks.max": "many", "batch.size": "none"},
            ("{0} (bad.json): tasks.max: Invalid value many", "batch.size", "nothing was changed"),
        ),
        (
            {"connector.class": "no.such.Sink"},
            ("lacks a connector class: put its jars into", "matches no.such.Sink"),
        ),
        ({"connection.password": "${file:/no/x:y}"}, ("Correct connect.secrets.*",)),
    ],
)
def test_a_refused_configuration_changes_no_connector(
    waitreg_connect: Commands, connectors: Connectors, names: Names, changes: dict[str, str], said: tuple[str, ...]
) -> None:
    refused = waitreg_connect("apply", waitreg_connect.file("good"), waitreg_connect.file("bad", changes=changes))
    assert refused.code == 2
    assert all(words.format(names("bad")) in refused.errors for words in said), refused.errors
    assert connectors.rest.status(names("good")) == connectors.rest.status(names("bad")) == {}


def test_apply_again_changes_nothing_and_after_remove_it_continues(
    waitreg_connect: Commands, connectors: Connectors, topics: Topics, database: Database, names: Names
) -> None:
    run, settings, name = waitreg_connect, waitreg_connect.settings, names("wait.sink")
    connectors.remove_at_end(name)
    log, file = WaitTopic(topics, settings.wait.topic), run.file("wait.sink")
    assert words(run("apply", file)) == ["created", "ok"]
    log.write(wait_record(new_id(), 0))
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the first row")

    again = run("apply", file)
    assert (again.code, words(again)) == (0, ["unchanged", "ok"])
    second_sink = run("apply", run.file("second.sink"))
    assert (second_sink.code, f"{name} has the table" in second_sink.errors) == (2, True), second_sink.errors
    changed = run("apply", run.file("wait.sink", changes={"batch.size": "77"}))
    assert (changed.code, words(changed)) == (0, ["changed", "ok"])
    assert "batch.size" in changed.output

    def shown() -> dict[str, object]:
        status = run("status", name, "--json")
        assert status.code == 0, status.errors
        found = json.loads(status.output)["connectors"][0]
        return {name: found[name] for name in ("lag", "running")}

    wait_until(lambda: shown() == {"lag": 0, "running": True}, what="a sink that runs and is at the end")
    removed = run("remove", name, names("other"))
    assert (removed.code, words(removed)) == (0, ["removed", "not"])
    assert run("status", name).code == 1

    log.write(wait_record(new_id(), 0))
    assert run("apply", file).code == 0
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the second row")
