"""The pattern's published configurations run with our plugin, on their own table: for those who use them today."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.families import connector_class
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.connect_connectors import CONFIGS, Connectors
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings


@pytest.fixture
def published(settings_for: SettingsFactory, topics: Topics, database: Database) -> Settings:
    """Settings with topics, and with the published table in their schema."""
    settings = settings_for({"wait.partitions": 1})
    topics.create_own(settings)
    schema = settings.postgres.schema_name
    database.drop_at_end(settings)
    with psycopg.connect(database.url, autocommit=True, options=f"-c search_path={schema}") as connection:
        connection.execute(f"create schema {schema}".encode())
        connection.execute((CONFIGS / "published" / "wait.sql").read_bytes())
    return settings


def test_only_expired_registrations_become_dead_letters(
    jdbc_connector: Path, connectors: Connectors, published: Settings, topics: Topics, database: Database
) -> None:
    sink, source = (connector_class(jdbc_connector, kind) for kind in ("sink", "source"))
    resolved, expired = new_id(), new_id()
    headers = (("tag", b"1"), ("tag", None), ("città", "è".encode()))
    topics.produce(
        published.wait.topic,
        [
            wait_record(resolved, 0, expires_in_s=0),
            wait_record(expired, 0, expires_in_s=0, key=b"\xff", value=b"\x00\xff", headers=headers),
            tombstone(resolved, 0),
        ],
    )
    connectors.start("published/wait.sink.json", published, {"connector.class": sink})
    wait_until(
        lambda: database.rows(published, "select wait_expiration_uuid from wait") == [(expired,)], what="the table"
    )
    connectors.start("published/expired.source.json", published, {"connector.class": source})

    [letter] = wait_until(lambda: topics.read(published.dead_letter.topic), what="the dead letter")
    assert (letter.key, letter.value) == (b"\xff", b"\x00\xff")
    assert letter.headers == (("Exception", b"ExpiredRecordException"), *headers)
