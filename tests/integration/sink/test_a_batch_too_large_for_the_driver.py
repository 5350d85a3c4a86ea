"""P6, P7: a batch that the driver refuses is read again in smaller ones, until it fits; nothing is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sink.read.kafka_reader import RESULT_LIMIT_PROPERTY
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.test_the_view_is_the_logs_truth import view_of
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def small_results(spark: SparkSession) -> Iterator[None]:
    """A driver that takes two megabytes from a job: Spark looks the limit up for every one."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get(RESULT_LIMIT_PROPERTY)
    conf.set(RESULT_LIMIT_PROPERTY, "2m")
    yield
    conf.set(RESULT_LIMIT_PROPERTY, before)


@pytest.mark.guarantee("P7.7")
@pytest.mark.fault("F64")
@pytest.mark.usefixtures("small_results")
@pytest.mark.parametrize(("count", "size"), [(10, 400_000), (2_600, 2_000)], ids=["few", "more than a look"])
def test_it_is_halved_until_it_fits(
    count: int,
    size: int,
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    start_sink: StartSink,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.1, "sink.restart_backoff_max_s": 0.2})
    log = WaitTopic(topics, settings.wait.topic)
    log.write(*[wait_record(new_id(), 0, value=os.urandom(size)) for _ in range(count)])

    assert start_sink(settings, once=True).wait_ended() is None

    assert view_of(database, settings) == log.view
    assert f"a batch is larger than {RESULT_LIMIT_PROPERTY} allows" in caplog.text
