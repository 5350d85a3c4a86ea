"""The records that the load generator lists are those in the topic."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.conftest import SettingsFactory
from tests.support.naming import Names
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError, TransientError
from waitreg.load.load import LoadPlan, places_of, run_load
from waitreg.load.manifest import fingerprint, read_manifest
from waitreg.load.shapes import SHAPES


@pytest.mark.parametrize(("shape", "count"), [("orders", 500), ("binary", 28), ("hostile", 28)])
def test_the_manifest_names_every_record_byte_for_byte(
    settings_for: SettingsFactory, topics: Topics, names: Names, tmp_path: Path, shape: str, count: int
) -> None:
    topic = topics.create(names(shape))
    shown: list[int] = []
    plan = LoadPlan(topic, count, make=SHAPES[shape], manifest=tmp_path / "manifest.jsonl")
    assert run_load(settings_for(), plan, shown.append).records == count == shown[-1]
    published = {one.coordinates: one for one in read_manifest(tmp_path / "manifest.jsonl")}
    records = topics.read(topic)
    assert len(records) == count == len(published)
    for record in records:
        one = published[(record.topic, record.partition, record.offset)]
        assert one.fingerprint == fingerprint(record.key, record.value, record.headers)
        assert one.timestamp_ms == record.timestamp_ms


class Acknowledged:
    """A delivery report without its offset."""

    def __init__(self, message: Message) -> None:
        self.topic, self.partition, self.timestamp = message.topic, message.partition, message.timestamp

    def offset(self) -> int | None:
        return None


class ForgetfulProducer(Producer):
    """Reports every third record's place only, as for a batch that the broker has already."""

    reports = 0

    def produce(self, topic: str, *, on_delivery: Callable[[KafkaError | None, Any], None], **record: Any) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            self.reports += 1
            on_delivery(error, message if self.reports % 3 == 0 else Acknowledged(message))

        super().produce(topic, on_delivery=delivered, **record)


def test_records_acknowledged_without_a_place_are_found_in_the_topic(
    settings_for: SettingsFactory, topics: Topics, names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create(names("orders"))
    plan = LoadPlan(topic, 56, make=SHAPES["hostile"], manifest=tmp_path / "manifest.jsonl")
    run_load(settings_for(), replace(plan, manifest=None))  # the same records, in no manifest
    before = {(record.topic, record.partition, record.offset) for record in topics.read(topic)}
    monkeypatch.setattr("waitreg.load.load.Producer", ForgetfulProducer)
    assert run_load(settings_for(), plan).records == 56
    published = {one.coordinates: one for one in read_manifest(tmp_path / "manifest.jsonl")}
    assert len(published) == 56
    for record in topics.read(topic):
        here = (record.topic, record.partition, record.offset)
        assert (here in published) is (here not in before)
        if here in published:
            assert published[here].fingerprint == fingerprint(record.key, record.value, record.headers)
            assert published[here].timestamp_ms == record.timestamp_ms


def test_an_incomplete_manifest_is_reported(settings_for: SettingsFactory, topics: Topics, names: Names) -> None:
    topic = topics.create(names("orders"))
    with pytest.raises(TransientError, match="1 records were acknowledged without a place"):
        places_of(settings_for(), topic, [(0, fingerprint(b"k", b"v", []))], frozenset())


def test_a_rate_is_kept(settings_for: SettingsFactory, topics: Topics, names: Names) -> None:
    started = time.monotonic()
    run_load(settings_for(), LoadPlan(topics.create(names("orders")), 40, rate_per_s=80))
    assert time.monotonic() - started >= 39 / 80


def test_two_loads_of_one_seed_continue_each_other(settings_for: SettingsFactory, topics: Topics, names: Names) -> None:
    topic = topics.create(names("orders"), partitions=1)
    run_load(settings_for(), LoadPlan(topic, 30))
    run_load(settings_for(), LoadPlan(topic, 30, first=30))
    assert len({(record.key, record.value, record.headers) for record in topics.read(topic)}) == 60


def test_a_topic_that_is_not_there_is_named_at_once(settings_for: SettingsFactory, names: Names) -> None:
    command = f"waitreg topics create --set processor.topics={names('nowhere')} --input-partitions"
    with pytest.raises(ConfigurationError, match=command):
        run_load(settings_for(), LoadPlan(names("nowhere"), 1))
