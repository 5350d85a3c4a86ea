"""What expires continues in the trace that it came in."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sweeper.job import SparkJob
from sweeper.result import RowOutcome
from sweeper.sweep_task import sweep_partition
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario
from tests.support.collector import Collector
from tests.support.traces import Traced, attributes, id_of, trace_of, traceparent
from wait_registry.records.original import Original
from wait_registry.records.topics import redelivery_topic
from wait_registry.telemetry.tracing import FirstDelivery, RecordPublished

TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
PARENTED = (("tenant", b"acme"), traceparent(TRACE, PARENT))


def test_exports_are_spans_of_the_trace_of_their_record(at: Scenario, traced: Traced) -> None:
    again = redelivery_topic(at.settings.processor.topics[0], at.settings.processor.group)
    dead, redelivered = at.due(
        [at.wait_record(1, headers=PARENTED), at.wait_record(2, expiry_policy="redeliver", value=b"card 4711")]
    )
    sweep_partition(at.scope(), 0, tracer=traced.tracer)
    [letter], [delivery] = at.dead_letters(), at.topics.read(again)
    assert letter.headers[: len(PARENTED)] == PARENTED, "the dead letter names the trace as the record did"
    [exported] = traced.spans(f"send {letter.topic}")
    assert exported.parent is not None
    assert (trace_of(exported), exported.parent.span_id) == (TRACE, PARENT)
    assert attributes(exported)["messaging.message.id"] == dead.wait_id
    assert attributes(exported)["waitreg.outcome"] == "expired"
    original = redelivered.record.original
    assert isinstance(original, Original)
    first = FirstDelivery(*original[:4], at.settings.processor.group)
    [sent] = traced.spans(f"send {delivery.topic}")
    assert sent.parent is None
    assert (trace_of(sent), id_of(sent)) == (first.trace_id(), first.redelivery_span_id(2))
    assert attributes(sent)["waitreg.delivery"] == 2
    assert not [span for span in traced.spans() if "4711" in span.to_json() or "acme" in span.to_json()]


def test_a_tracer_that_fails_ends_no_export_and_its_chunks_are_counted(
    scenario: ScenarioFactory, traced: Traced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at = scenario({"sweeper.chunk_rows": 1})
    at.due(2)

    def fail(published: RecordPublished) -> None:
        raise RuntimeError(f"can't trace {published.headers}")

    monkeypatch.setattr(traced.tracer, "record_published", fail)
    result = sweep_partition(at.scope(), 0, tracer=traced.tracer)
    assert (result.counts[RowOutcome.EXPORTED], result.skip, len(at.dead_letters())) == (2, None, 2)
    assert "no traces of exported records: RuntimeError" in caplog.text
    assert "can't trace" not in caplog.text


def test_a_sweep_in_spark_has_sent_its_spans_when_it_is_over(scenario: ScenarioFactory, spark: SparkSession) -> None:
    with Collector() as collector:
        at = scenario({"telemetry.traces": True, "telemetry.traces_endpoint": collector.endpoint})
        at.due([at.wait_record(1, headers=PARENTED)])
        [result] = SparkJob(at.settings, spark)(at.scope(), [0])
        assert result.counts[RowOutcome.EXPORTED] == 1
    [span] = collector.received
    assert (span.service, span.trace_id, span.parent_id) == ("waitreg-sweeper", f"{TRACE:032x}", f"{PARENT:016x}")
