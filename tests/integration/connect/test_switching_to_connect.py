"""P3, P4: connectors are refused while a sink or a sweeper of ours has left a position or a slot."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.command_setting import connect_settings
from tests.integration.connect.outbox import DEAD_LETTER, fill, places
from tests.integration.connect.outbox import register as show
from tests.integration.connect.test_source_and_sweeper import FILLED, SWEPT
from tests.support.command import run_waitreg
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics
from wait_registry.cli.connect.caught_up import SinksBehind, await_spark_sink
from wait_registry.cli.connect.connector_file import Connector, own_files, read_connector
from wait_registry.cli.connect.postgres_checks import require_no_stale_slot
from wait_registry.cli.connect.variables import variable
from wait_registry.errors import ConfigurationError
from wait_registry.local.connect_worker import ConnectWorker
from wait_registry.settings.root import Settings

NOWHERE = "http://127.0.0.1:9"
POSITION = "insert into sink_progress values (%s, 'id', %s, %s, now(), now()) returning 1"
MOVED = "update sink_progress set next_offset = %s where partition = %s returning 1"


@pytest.mark.guarantee("P3.8")
@pytest.mark.parametrize("what", ["--sink", "--source"])
def test_a_position_of_our_sink_refuses_connectors(
    settings_for: SettingsFactory, database: Database, tmp_path: Path, what: str
) -> None:
    settings = settings_for(connect_settings(NOWHERE, {"sweeper.kind": "connect"}))
    database.install(settings)
    database.rows(settings, POSITION, "another.wait", 0, 7)
    no_worker = run_waitreg(tmp_path, "connect", "apply", what, "debezium", settings=settings)
    assert (no_worker.code, "no Kafka Connect worker answers" in no_worker.errors) == (1, True), no_worker.errors

    database.rows(settings, POSITION, settings.wait.topic, 0, 7)
    refused = run_waitreg(tmp_path, "connect", "apply", what, "debezium", settings=settings)
    assert (refused.code, "run `waitreg rebuild` with sink.kind=connect" in refused.errors) == (2, True), refused.errors


def test_an_unavailable_postgres_is_reported_once(settings_for: SettingsFactory, tmp_path: Path) -> None:
    away = {"postgres.url": "postgresql://waitreg@127.0.0.1:9/shop", "sweeper.kind": "connect"}
    settings = settings_for(connect_settings(NOWHERE, away))
    asked = run_waitreg(tmp_path, "connect", "apply", "--source", "debezium", settings=settings)
    assert (asked.code, asked.errors.count("or has left anything behind. The steps for a change")) == (1, 1), (
        asked.errors
    )


class Pace:
    """A clock that runs while one waits, and a sink that writes its positions meanwhile."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings, self._database = settings, database
        self._now = 0.0
        self.to_write: list[tuple[int, int]] = []

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += 60 * seconds
        if self.to_write:
            partition, offset = self.to_write.pop(0)
            self._database.rows(self._settings, MOVED, offset, partition)


@pytest.mark.guarantee("P4.16")
def test_a_new_source_waits_until_our_sink_has_read_the_log(
    prepared: SettingsFactory, database: Database, topics: Topics
) -> None:
    settings = prepared({"wait.partitions": 2, "connect.start_timeout_s": 60})
    pace = Pace(settings, database)
    said: list[str] = []

    def wait() -> None:
        await_spark_sink(settings, lambda word, name, details: said.append(details), pytest.fail, pace)

    wait()  # no sink has been here
    for partition in range(2):
        records: list[Outgoing | bytes] = [Outgoing(b"", key=b"key", partition=partition) for _ in range(3)]
        topics.produce(settings.wait.topic, records)
        database.rows(settings, POSITION, settings.wait.topic, partition, 3 * partition)
    with pytest.raises(SinksBehind, match=r"waitreg sink is 3 offsets behind .* No source is created before"):
        wait()
    said.clear()
    pace.to_write = [(0, 2), (0, 3)]
    wait()
    assert (pace.to_write, said[0]) == ([], "3 offsets to what was the log's end")


@pytest.mark.timeout(240)
def test_apply_creates_no_source_while_our_sink_is_behind(
    connect: ConnectWorker,
    prepared: SettingsFactory,
    database: Database,
    topics: Topics,
    names: Names,
    tmp_path: Path,
) -> None:
    given = {"sweeper.kind": "connect", "connect.url": connect.url, "connect.start_timeout_s": 3}
    settings = prepared({**given, "sink.idle_progress_s": 0.5})
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"key", partition=0)])
    database.rows(settings, POSITION, settings.wait.topic, 0, 0)
    source = Path(own_files("source", "debezium")[0])
    (tmp_path / "mine.json").write_text(source.read_text("utf-8").replace('"expired.source"', f'"{names("mine")}"'))
    refused = run_waitreg(tmp_path, "connect", "apply", "mine.json", settings=settings)
    assert (refused.code, "waitreg sink is 1 offsets behind" in refused.errors) == (1, True), refused.errors
    assert ConnectRest(connect.url).status(names("mine")) == {}


def sources(settings: Settings) -> list[Connector]:
    return [read_connector(file, partial(variable, settings=settings)) for file in own_files("source", "debezium")]


@pytest.mark.guarantee("P4.16")
def test_a_slot_from_before_a_sweep_is_refused(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for()
    database.install(settings)
    new = sources(settings)
    slot = f"waitreg_{settings.postgres.schema_name}_tombstones"
    assert slot in {connector.config["slot.name"] for connector in new}
    database.rows(settings, SWEPT, settings.wait.topic, 600)
    with database.connect(settings) as source:
        source.execute("select pg_create_logical_replication_slot(%s, 'pgoutput', true)", (slot,))
        require_no_stale_slot(new, settings, pytest.fail)  # nothing has ever been in the outbox
        database.rows(settings, FILLED, settings.wait.topic, 1, 500)
        require_no_stale_slot(new, settings, pytest.fail)  # the sweeper's last sweep was before
        database.rows(settings, SWEPT, settings.wait.topic, 400)
        with pytest.raises(ConfigurationError, match=rf"drop_replication_slot\('{slot}'\); run this again"):
            require_no_stale_slot(new, settings, pytest.fail)
    require_no_stale_slot(new, settings, pytest.fail)  # with no slot it begins with what is open


def test_a_fill_of_no_bytes_only_closes_what_is_exported(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for()
    database.install(settings)
    with database.connect(settings) as connection:
        for number, wait_id in enumerate(("exported", "not yet read back", "due since")):
            show(connection, wait_id, 0, number)
            if number < 2:
                assert fill(connection) == 1
        connection.execute(DEAD_LETTER, (0, "expired", "exported", 0, 0))
        assert fill(connection, max_bytes=0) == 0
        assert places(connection, "expired_tombstone") == [("exported", 0, 0)]
        assert len(places(connection)) == 2
