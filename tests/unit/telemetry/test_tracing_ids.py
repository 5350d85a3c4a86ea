"""A record's ids can be worked out again by whoever sees it next, and are as good as random for samplers."""

from __future__ import annotations

from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from wait_registry.records.original import Original
from wait_registry.telemetry.tracing_spans import FirstDelivery

ORIGINAL = Original("orders", 3, 42, 1_795_227_600_123, "create", b"key", b"value", ())


def first_delivery(original: Original, group: str) -> FirstDelivery:
    return FirstDelivery(*original[:4], group)


FIRST = first_delivery(ORIGINAL, "shop")


def test_the_ids_stay_what_they_are_so_that_versions_meet_in_one_trace() -> None:
    assert f"{FIRST.trace_id():032x}" == "6a0065f9e220f9969ac062d894bce229"
    assert f"{FIRST.redelivery_span_id(2):016x}" == "b137f25b67c41ff5"


def test_records_groups_and_deliveries_have_ids_of_their_own() -> None:
    others = [
        first_delivery(ORIGINAL._replace(topic="orders2"), "shop"),
        first_delivery(ORIGINAL._replace(partition=4), "shop"),
        first_delivery(ORIGINAL._replace(offset=43), "shop"),
        first_delivery(ORIGINAL._replace(timestamp_ms=0), "shop"),
        first_delivery(ORIGINAL, "shop2"),
    ]
    assert len({first.trace_id() for first in [FIRST, *others]}) == 6
    assert len({FIRST.redelivery_span_id(attempt) for attempt in (2, 3, 4)}) == 3


def test_a_sampler_takes_its_share_of_the_traces_that_records_start() -> None:
    sampler = TraceIdRatioBased(0.25)
    ids = [first_delivery(ORIGINAL._replace(offset=offset), "shop").trace_id() for offset in range(2000)]
    taken = sum(sampler.should_sample(None, one, "process").decision is Decision.RECORD_AND_SAMPLE for one in ids)
    assert 400 < taken < 600
