"""A small real run: watched, read when it is over, judged; and a forgery in its topics is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.chaos.checker.verdict import Verdict, check
from tests.chaos.history.history import Poll
from tests.chaos.history.reading import read_history
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


def publish(settings: Settings, manifest: Path) -> None:
    """Publish orders and hostile records."""
    topic = settings.processor.topics[0]
    run_load(settings, LoadPlan(topic, ORDERS, manifest=manifest))
    run_load(settings, LoadPlan(topic, HOSTILE, make=shape_named("hostile"), manifest=manifest))


def judged(settings: Settings, folder: Path, polls: Sequence[Poll]) -> Verdict:
    return check(read_history(settings, folder, polls, with_tables=False))


def test_clean_run_passes_and_forgeries_in_it_are_found(
    prepared: SettingsFactory, topics: Topics, tmp_path: Path
) -> None:
    calls = tmp_path / "calls.jsonl"
    with Backgrounds(tmp_path) as backgrounds:
        downstream = backgrounds.downstream("100%:10ms", calls, "downstream")
        downstream.wait_ready()
        settings = prepared(
            {
                "processor.handler": downstream.address,
                "processor.max_in_flight": 20,
                "processor.prefetch_max": 60,
                "processor.commit_interval_s": 0.1,
            }
        )
        topics.produce(settings.processor.topics[0], [Outgoing(b"not in the manifest", b"key", [("a", None)])])
        publish(settings, tmp_path / "manifest.jsonl")
        with Watch(settings, 0.02) as watch:
            processor = backgrounds.service("processor", settings)
            wait_until(lambda: is_done(calls, processor), 120, "a call for each record")
            assert processor.stop() == 0
    verdict = judged(settings, tmp_path, watch.polls)
    assert verdict.passed, "\n\n".join([verdict.void, *verdict.stories()])
    assert verdict.figures["records"] == verdict.figures["done"] == ORDERS + HOSTILE + 1
    assert len(watch.polls) > 3

    wait_id = verdict.history.wait_log[0].wait_id
    topics.produce(settings.dead_letter.topic, [Outgoing(b"x", b"k", [("WAIT_LINEAGE", b"7")])])
    topics.produce(settings.wait.topic, [Outgoing(None, wait_id.encode(), [("WAIT_OUTCOME", b"done")])])
    forged = judged(settings, tmp_path, watch.polls)
    assert set(forged.counts) == {"changed", "early_tombstone"}
    assert wait_id in "\n".join(forged.stories())


def is_done(calls: Path, processor: Background) -> bool:
    processor.require_running()
    return len({call.wait_id for call in read_calls(calls) if call.succeeded}) >= ORDERS + HOSTILE + 1
