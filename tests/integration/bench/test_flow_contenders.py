"""Every Python contender handles every record and prints the line it is measured by; how fast is no test's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.contenders.arguments import FlowArguments
from bench.contenders.flows import AIOKAFKA, ARROYO, BARE_LOOP, BATCH, FASTSTREAM, REGISTRY, SHARE_CONSUMER, Flow
from bench.contenders.load import Share, fill
from bench.contenders.payload import sent_ns
from bench.contenders.peers_environment import MAKE, peers_are_there
from bench.harness.process import ROOT, ProcessError, run_flow
from bench.harness.row import Bench, Figures
from tests.support.chosen_stack import skips_are_failures
from tests.support.naming import Names
from tests.support.stack import Stack
from tests.support.topics import Topics
from wait_registry.records.wait_record import decode_wait_record

RECORDS = 300
FROM = 50
IN_FLIGHT = 20
MIXTURE = (Share(10, 30), Share(90, 5))
HANDLERS = ("noop", "timed", "latency")
OURS = [*((flow, handler) for flow in (REGISTRY, SHARE_CONSUMER) for handler in HANDLERS), (BATCH, "timed")]
PEERS = (AIOKAFKA, ARROYO, FASTSTREAM)

RunFlow = Callable[..., Figures]


@pytest.fixture
def run(stack: Stack, topics: Topics, names: Names, tmp_path: Path) -> RunFlow:
    """Has a contender handle every record of a topic made for it."""
    bench = Bench(stack.bootstrap_servers, stack.postgres_url, tmp_path, quick=True, full=False, say=lambda _: None)

    def run(
        flow: Flow, handler: str, *options: str, to_record: int = RECORDS, records: int = RECORDS, group: str = ""
    ) -> Figures:
        topic = names("input")
        topics.delete_at_end(topic)
        fill(bench.kafka, topic, records, MIXTURE)
        group = group or names("group")
        topics.delete_at_end(f"{group}.wait", f"{group}.dlq")
        arguments = FlowArguments(bench.kafka, topic, group, IN_FLIGHT, handler, FROM, to_record, 120.0)
        return run_flow(bench, [*flow.program(), *arguments.command_line(), *options], deadline_s=150)

    return run


def check(figures: Figures, handler: str) -> None:
    """Compare a contender's figures with what it was given to do."""
    assert figures["records"] == RECORDS - FROM
    assert figures["seconds"] > 0
    assert figures["cpu_s"] > 0
    assert figures["rss_mb"] >= figures["rss_now_mb"] > 5
    if handler == "timed":
        # At least as long as they were to sleep, and at most N at once.
        assert figures["calls_s"] >= figures["ordered_s"] >= (RECORDS - FROM) * 0.005
        assert figures["busy_s"] <= figures["seconds"] * IN_FLIGHT * 1.001
    else:
        assert figures["calls_s"] == figures["ordered_s"] == 0
    if handler == "latency":
        assert 0 < figures["p50_ms"] <= figures["p99_ms"]


@pytest.mark.parametrize(("flow", "handler"), OURS, ids=[f"{flow.name}, {handler}" for flow, handler in OURS])
def test_what_this_environment_has_calls_each_handler_for_every_record(flow: Flow, handler: str, run: RunFlow) -> None:
    check(run(flow, handler), handler)


@pytest.fixture(scope="session")
def peers() -> None:
    """Skips (CI: fails) where the peers' environment hasn't been made."""
    if not peers_are_there():
        said = f"the benchmark's Python peers NOT TESTED: make their environment with `{MAKE}`"
        if skips_are_failures():
            pytest.fail(said)
        pytest.skip(said)


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("flow", PEERS, ids=lambda flow: flow.name)
def test_a_peer_calls_each_handler_for_every_record(peers: None, flow: Flow, handler: str, run: RunFlow) -> None:
    check(run(flow, handler), handler)


def test_the_registry_also_tells_how_long_it_took_to_start_and_what_it_takes_idle(run: RunFlow) -> None:
    figures = run(REGISTRY, "noop", "--idle-s", "1")
    assert 0.1 < figures["first_record_s"] < 120
    assert 0 <= figures["idle_cpu_share"] < 2


def test_two_processes_of_a_group_are_measured_as_one(run: RunFlow) -> None:
    # Many more than are counted: neither may have come to its end before the other is at work.
    figures = run(REGISTRY, "timed", "--processes", "2", records=40 * RECORDS)
    assert figures["records"] == pytest.approx(RECORDS - FROM, abs=2 * IN_FLIGHT)
    assert figures["busy_s"] <= figures["seconds"] * 2 * IN_FLIGHT * 1.001
    assert 0 <= figures["uneven_share"] <= 1


def test_the_bare_loop_writes_wait_records_and_tombstones_as_the_processor_does(
    run: RunFlow, topics: Topics, names: Names
) -> None:
    group = names("group")
    check(run(BARE_LOOP, "noop", "--keep-topics", group=group), "noop")
    written = topics.read(f"{group}.wait")
    waits = {
        record.key: decode_wait_record(record.key, record.value, record.headers) for record in written if record.value
    }
    assert len(waits) == RECORDS
    assert {record.key for record in written if record.value is None} == set(waits)
    assert {dict(record.headers)["WAIT_OUTCOME"] for record in written if record.value is None} == {b"done"}
    wait = next(iter(waits.values()))
    assert (wait.group, wait.delivery, wait.max_deliveries, wait.expiry_policy) == (group, 1, 3, "dlq")
    originals = {(wait.original.partition, wait.original.offset) for wait in waits.values()}
    assert originals == {(partition, offset) for partition in range(4) for offset in range(RECORDS // 4)}


def test_the_bare_loop_handles_latency_and_can_leave_the_pattern_out(
    run: RunFlow, topics: Topics, names: Names
) -> None:
    check(run(BARE_LOOP, "latency"), "latency")
    group = names("plain")
    # It begins again at each partition's end: a topic may be shorter than what is measured.
    check(run(BARE_LOOP, "noop", "--plain", "--keep-topics", records=RECORDS // 3, group=group), "noop")
    assert topics.read(f"{group}.wait") == []


def test_the_bare_loop_refuses_a_handler_that_waits(run: RunFlow) -> None:
    with pytest.raises(ProcessError, match="no workers"):
        run(BARE_LOOP, "timed")


def test_a_contender_that_does_not_get_there_says_how_far_it_came(kafka: str, topics: Topics, names: Names) -> None:
    topic, group = names("input"), names("group")
    topics.delete_at_end(topic)
    fill(kafka, topic, 20)
    arguments = FlowArguments(kafka, topic, group, IN_FLIGHT, "noop", 5, 40, 15.0)
    done = subprocess.run(
        [*REGISTRY.program(), *arguments.command_line()], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "of 40 were over after 15 s" in done.stderr


def test_a_trickle_is_what_was_asked_for(kafka: str, topics: Topics, names: Names) -> None:
    topic = topics.create(names("input"), 4)
    command = [sys.executable, "-m", "bench.contenders.load", "--kafka", kafka, "--topic", topic]
    subprocess.run([*command, "--per-s", "50", "--seconds", "1"], cwd=ROOT, check=True)
    written = topics.read(topic)
    assert len(written) == 50
    assert {len(record.value or b"") for record in written} == {200}
    sent = sorted(sent_ns(record.value or b"") for record in written)
    assert 0.5e9 < sent[-1] - sent[0] < 60e9
