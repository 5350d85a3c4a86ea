"""A small real run: watched while it continues, read when it is over, judged; and a forgery in its topics is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.chaos.checker.verdict import Verdict, check
from tests.chaos.checker.violation import Kind
from tests.chaos.history.history import Limits, Look
from tests.chaos.history.reading import Where, read_history
from tests.chaos.history.watch import Watch
from tests.conftest import SettingsFactory
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.demo.background import Background, Backgrounds
from wait_registry.demo.calls import read_calls
from wait_registry.demo.load import LoadPlan, run_load
from wait_registry.demo.shapes import shape_named
from wait_registry.settings.root import Settings

ORDERS, HOSTILE = 160, 40


def publish(settings: Settings, where: Where) -> None:
    """Publish orders and what is allowed and nobody expects, and one record that no manifest names."""
    topic = where.inputs[0]
    run_load(settings, LoadPlan(topic, ORDERS, manifest=where.manifest))
    run_load(settings, LoadPlan(topic, HOSTILE, make=shape_named("hostile"), manifest=where.manifest))


def judged(where: Where, looks: Sequence[Look]) -> Verdict:
    limits = Limits(max_in_flight=20, prefetch=60, processes=1)
    return check(read_history(where, looks, faults=(), limits=limits, look_at_view=False))


def told(verdict: Verdict) -> str:
    return "\n\n".join(verdict.stories())


def test_a_clean_run_passes_and_what_is_forged_into_its_topics_is_found(
    prepared: SettingsFactory, topics: Topics, tmp_path: Path
) -> None:
    with Backgrounds(tmp_path) as backgrounds:
        downstream = backgrounds.downstream("100%:10ms", tmp_path / "calls.jsonl", "downstream")
        downstream.wait_ready()
        settings = prepared(
            {
                "processor.handler": downstream.address,
                "processor.max_in_flight": 20,
                "processor.prefetch_max": 60,
                "processor.commit_interval_s": 0.1,
            }
        )
        where = Where.of(settings, tmp_path)
        topics.produce(where.inputs[0], [Outgoing(b"nobody wrote this down", b"key", [("a", None)])])
        publish(settings, where)
        with Watch(where, 0.02) as watch:
            processor = backgrounds.service("processor", settings)
            wait_until(lambda: is_done(where, processor), 120, "a call for each record")
            assert processor.stop() == 0
    verdict = judged(where, watch.looks)
    assert verdict.passed, f"{verdict.void}\n{told(verdict)}"
    assert verdict.figures["records"] == verdict.figures["done"] == ORDERS + HOSTILE + 1
    assert verdict.figures["looks"] > 3

    wait_id = verdict.history.wait_log[0].wait_id
    letter = Outgoing(b"x", b"k", [("WAIT_LINEAGE", b"7")])
    stone = Outgoing(None, wait_id.encode(), [("WAIT_OUTCOME", b"done")])
    topics.produce(where.letter_topics[0], [letter])
    topics.produce(where.wait_topic, [stone])
    forged = judged(where, watch.looks)
    assert {kind for kind, count in forged.counts.items() if count} == {Kind.CHANGED, Kind.EARLY_TOMBSTONE}
    assert wait_id in told(forged)


def is_done(where: Where, processor: Background) -> bool:
    processor.require_running()
    assert where.calls is not None
    return len({call.wait_id for call in read_calls(where.calls) if call.succeeded}) >= ORDERS + HOSTILE + 1
