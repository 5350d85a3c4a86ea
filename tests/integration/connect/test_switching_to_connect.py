"""P3, P4: connectors and services of ours would do the same work twice: the second of them is refused."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from sweeper.connect_policy import require_no_source_at_work
from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import FILLED, SWEPT
from tests.support.command import run_waitreg
from tests.support.connect_connectors import our_connector, own_files
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.settings import with_postgres
from wait_registry.errors import ConfigurationError
from waitreg.connect.our_services import OurServices

NOWHERE = {"connect.url": "http://127.0.0.1:9", "sink.kind": "connect", "sweeper.kind": "connect"}
POSITION = "insert into sink_progress values (%s, 'id', 0, 7, now(), now()) returning 1"


@pytest.mark.guarantee("P3.8")
@pytest.mark.parametrize("what", ["wait.sink", "expired.source"])
def test_a_position_of_our_sink_refuses_connectors(
    settings_for: SettingsFactory, database: Database, tmp_path: Path, what: str
) -> None:
    settings = settings_for(NOWHERE)
    database.install(settings)
    database.rows(settings, POSITION, "another.wait")
    no_worker = run_waitreg(tmp_path, "connect", "check", f"{what}.debezium", settings=settings)
    assert (no_worker.code, "no Kafka Connect worker answers" in no_worker.errors) == (1, True), no_worker.errors
    database.rows(settings, POSITION, settings.wait.topic)
    refused = run_waitreg(tmp_path, "connect", "check", f"{what}.debezium", settings=settings)
    assert (refused.code, "run `waitreg rebuild` with sink.kind=connect" in refused.errors) == (2, True), refused.errors


def test_an_unavailable_postgres_is_reported_once(settings_for: SettingsFactory, tmp_path: Path) -> None:
    settings = settings_for({**NOWHERE, "postgres.url": "postgresql://waitreg@127.0.0.1:9/shop"})
    asked = run_waitreg(tmp_path, "connect", "check", "expired.source.debezium", settings=settings)
    assert (asked.code, asked.errors.count("or has left anything behind. The steps for a change")) == (1, 1), (
        asked.errors
    )


def test_a_source_is_refused_after_a_recent_sweep_of_its_topic(
    settings_for: SettingsFactory, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_for()
    OurServices(settings).require_no_sweeper_at_work()
    assert "Postgres can't be asked" in capsys.readouterr().err, "there is no schema yet"
    database.install(settings)
    ours = OurServices(settings)
    ours.require_no_sweeper_at_work()
    long_ago_s = 10 * settings.sweeper.interval_s + 60
    database.rows(settings, SWEPT, settings.wait.topic, long_ago_s)
    database.rows(settings, SWEPT, "another.wait", 1)
    ours.require_no_sweeper_at_work()
    database.rows(settings, SWEPT, settings.wait.topic, 5)
    with pytest.raises(ConfigurationError, match=r"would export each expired registration twice: stop"):
        ours.require_no_sweeper_at_work()
    assert capsys.readouterr().err == ""


@pytest.mark.guarantee("P4.16")
def test_with_the_kind_connect_a_sweeper_does_not_start(settings_for: SettingsFactory, tmp_path: Path) -> None:
    refused = run_waitreg(tmp_path, "sweeper", settings=settings_for({"sweeper.kind": "connect"}))
    assert refused.code == 2
    assert "sweeper.kind is connect: a Kafka Connect source exports expired records" in refused.errors + refused.output


def test_a_filled_outbox_stops_a_sweeper(settings_for: SettingsFactory, database: Database, tmp_path: Path) -> None:
    settings = settings_for()
    require_no_source_at_work(settings)  # there is no schema yet
    database.install(settings)
    require_no_source_at_work(settings)
    long_ago_s = 10 * settings.sweeper.interval_s + 60
    database.rows(settings, FILLED, settings.wait.topic, 1, long_ago_s)
    database.rows(settings, FILLED, "another.wait", 2, 1)
    require_no_source_at_work(settings)
    database.rows(settings, FILLED, settings.wait.topic, 3, 5)
    with pytest.raises(ConfigurationError, match=r"put a row into expired_outbox \d+ s ago"):
        require_no_source_at_work(settings)
    refused = run_waitreg(tmp_path, "sweeper", "--once", settings=settings)
    assert refused.code == 2
    assert "delete the connectors expired.source and expired.tombstones" in refused.errors + refused.output


def test_a_sweeper_does_not_start_while_a_slot_is_in_use(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for()
    database.install(settings)
    slot = f"waitreg_{settings.postgres.schema_name}_expired"
    with database.connect(settings) as source:
        source.execute("select pg_create_logical_replication_slot(%s, 'pgoutput', true)", (slot,))
        with pytest.raises(ConfigurationError, match="a Kafka Connect source reads expired_outbox"):
            require_no_source_at_work(settings)
    require_no_source_at_work(settings)


def test_a_sweeper_that_sees_no_outbox_starts(settings_for: SettingsFactory, database: Database, names: Names) -> None:
    settings = settings_for()
    database.install(settings)
    database.rows(settings, FILLED, settings.wait.topic, 1, 1)
    role = f"{names.schema}_sweeper"
    url = f"{database.url}{'&' if '?' in database.url else '?'}options=-c%20role%3D{role}"
    with database.connect(settings) as owner:
        owner.execute(f"create role {role}; grant usage on schema {names.schema} to {role}".encode())
        try:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(url) as sweeper:
                sweeper.execute(f"select from {names.schema}.expired_outbox".encode())
            require_no_source_at_work(with_postgres(settings, url))
        finally:
            owner.execute(f"drop owned by {role}; drop role {role}".encode())


@pytest.mark.guarantee("P4.16")
def test_a_slot_from_before_a_sweep_is_refused(
    settings_for: SettingsFactory, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_for()
    ours = OurServices(settings)
    database.install(settings)
    new = [our_connector(file, settings) for file in own_files("source", "debezium")]
    slot = f"waitreg_{settings.postgres.schema_name}_tombstones"
    assert slot in {connector.config["slot.name"] for connector in new}
    database.rows(settings, SWEPT, settings.wait.topic, 600)
    with database.connect(settings) as source:
        source.execute("select pg_create_logical_replication_slot(%s, 'pgoutput', true)", (slot,))
        ours.require_no_stale_slot(new)  # nothing has ever been in the outbox
        database.rows(settings, FILLED, settings.wait.topic, 1, 500)
        ours.require_no_stale_slot(new)  # the sweeper's last sweep was before
        database.rows(settings, SWEPT, settings.wait.topic, 400)
        with pytest.raises(ConfigurationError, match=rf"drop_replication_slot\('{slot}'\); run this again"):
            ours.require_no_stale_slot(new)
    ours.require_no_stale_slot(new)  # with no slot it begins with what is open
    assert capsys.readouterr().err == ""
