"""Processor, sink and sweeper over TLS, each a user of its own with its own rights only: both client families work.

Before a refusal means anything, what isn't refused must work.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sweeper.instruments import Instruments
from sweeper.job import SparkJob
from sweeper.result import RowOutcome
from sweeper.sweeper import Sweeper
from tests.refusals.secured_settings import SecuredSettings
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.processes import Services
from tests.support.waiting import wait_until
from wait_registry.telemetry.exposition import MetricsRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = {
    "processor.handler": "tests.integration.processor.deadly_handlers:dies_of_poison",
    "processor.ttl_s": 8,
    "processor.max_in_flight": 4,
    "processor.prefetch_max": 8,
    "processor.max_attempts": 1,
    "processor.handler_timeout_s": 1,
    "processor.margin_s": 0.5,
    "wait.skew_allowance_s": 0,
    "wait.partitions": 1,
}


@pytest.mark.guarantee("C.9")
@pytest.mark.timeout(240)
def test_records_of_a_killed_processor_are_dead_lettered_over_tls(
    secured_settings: SecuredSettings, services: Services, spark: SparkSession, database: Database,
    tmp_path: Path, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    from sink.service import SinkService

    processor = secured_settings.of("processor", "SASL_SSL", RULES)
    sink = secured_settings.of("sink", "SASL_SSL", RULES)
    sweeper = secured_settings.of("sweeper", "SSL", RULES)
    topics = secured_settings.topics
    database.install(sink)
    topics.produce(processor.processor.topics[0], [Outgoing(b"poison", b"key", (("name", b"\x00\xff"),))])
    started = services.start("processor", processor, environment={"CALLS": str(tmp_path / "calls")})
    assert started.wait() == 9, started.log.read_text()

    SinkService(sink, spark, once=True).run()
    assert database.rows(sink, "select original_key, body from wait") == [(b"key", b"poison")]
    due = "select count(*) from wait where wait_expiration_time < now()"
    wait_until(lambda: database.rows(sink, due) == [(1,)], 30, "the expiry")
    once = Sweeper(sweeper, SparkJob(sweeper, spark), Instruments(MetricsRegistry()))
    sweep = once.run_once()
    once.close()
    assert (sweep.counts[RowOutcome.EXPORTED], sweep.skipped) == (1, ()), sweep
    [letter] = topics.read(processor.dead_letter.topic)
    assert (letter.key, letter.value, letter.headers[0]) == (b"key", b"poison", ("name", b"\x00\xff"))
    by_certificate = secured_settings.of("sink", "SSL", RULES)
    SinkService(by_certificate, spark, once=True).run()
    assert database.rows(sink, "select reason from dead_letter") == [("expired",)]
    assert database.rows(sink, "select count(*) from wait") == [(0,)]
    assert [record.getMessage() for record in caplog.records if "AUTHORIZATION" in record.getMessage().upper()] == []
