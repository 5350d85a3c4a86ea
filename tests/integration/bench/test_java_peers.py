"""The benchmark's Java peers and the sink's peers do all the work that they are measured by; how fast is no test's."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bench.contenders.arguments import FlowArguments
from bench.contenders.debezium_sink import measure as measure_debezium
from bench.contenders.parallel_consumer.flow import ORDERS, Order, flow_command
from bench.contenders.parallel_consumer.program import class_path, javac_command
from bench.contenders.payload import value_of
from bench.contenders.row_at_a_time_sink import measure as measure_row_at_a_time
from bench.contenders.wait_log import WaitLog
from bench.contenders.wait_log_writer import fill
from bench.harness.process import ROOT, ProcessError, run_flow, started
from bench.harness.row import Bench, Figures
from tests.support.chosen_stack import skips_are_failures
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.stack import Stack
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.jvm import CONNECT_JAR_KINDS, jar_directory
from wait_registry.local.connect_worker import plugin_jar

RECORDS = 400
IN_FLIGHT = 20
CALL_MS = 5


@pytest.fixture(scope="session")
def parallel_consumer() -> None:
    """Skips (CI: fails) where the Parallel Consumer's jars or a compiler are missing."""
    try:
        javac_command()
        jar_directory("parallel-consumer")
    except ConfigurationError as problem:
        if skips_are_failures():
            raise
        pytest.skip(f"Parallel Consumer NOT TESTED: {problem}")


@pytest.fixture(scope="session")
def debezium() -> None:
    """Skips (CI: fails) where Kafka Connect's jars or our plugin are missing."""
    try:
        for kind in CONNECT_JAR_KINDS:
            jar_directory(kind)
        plugin_jar(ROOT)
    except ConfigurationError as problem:
        if skips_are_failures():
            raise
        pytest.skip(f"Kafka Connect NOT TESTED: {problem}")


@pytest.fixture
def bench(stack: Stack, tmp_path: Path) -> Bench:
    """A turn of the smoke."""
    return Bench(stack.bootstrap_servers, stack.postgres_url, tmp_path, quick=True, full=False, say=lambda _: None)


def flow(bench: Bench, topics: Topics, names: Names, order: Order, handler: str, *, keys: int = RECORDS) -> Figures:
    """Have the Parallel Consumer handle every record of a topic."""
    topic = topics.create(names("input"), 2)
    values = [value_of(CALL_MS, time.time_ns(), b"filler") for _ in range(RECORDS)]
    topics.produce(topic, [Outgoing(value, b"%d" % (number % keys)) for number, value in enumerate(values)])
    arguments = FlowArguments(bench.kafka, topic, names("group"), IN_FLIGHT, handler, 100, RECORDS, 90.0)
    return run_flow(bench, [*flow_command(order), *arguments.command_line()], deadline_s=120)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("handler", ["noop", "timed", "latency"])
def test_the_parallel_consumer_calls_each_handler_for_every_record(
    parallel_consumer: None, bench: Bench, topics: Topics, names: Names, order: Order, handler: str
) -> None:
    figures = flow(bench, topics, names, order, handler)

    assert figures["records"] == RECORDS - 100
    assert figures["seconds"] > 0
    assert figures["warm_s"] > 0
    assert figures["rss_mb"] >= figures["rss_now_mb"] > 0
    assert figures["calls_s"] >= (RECORDS - 100) * CALL_MS / 1000 * (handler == "timed")
    assert figures["ordered_s"] == (RECORDS - 100) * CALL_MS / 1000 * (handler == "timed")
    assert ("p50_ms" in figures) == ("p99_ms" in figures) == (handler == "latency")


def test_in_key_order_the_calls_of_one_key_follow_one_another(
    parallel_consumer: None, bench: Bench, topics: Topics, names: Names
) -> None:
    figures = flow(bench, topics, names, "key", "timed", keys=1)

    assert figures["busy_s"] <= figures["seconds"] + CALL_MS / 1000


def test_a_parallel_consumer_that_does_not_get_there_says_how_far_it_came(
    parallel_consumer: None, bench: Bench, topics: Topics, names: Names
) -> None:
    topic = topics.create(names("input"), 1)
    arguments = FlowArguments(bench.kafka, topic, names("group"), IN_FLIGHT, "noop", 1, 10, 1.0)

    with pytest.raises(ProcessError, match=r"ended with status 1(.|\n)*0 calls of 10 were over after 1\.0 s"):
        run_flow(bench, [*flow_command("unordered"), *arguments.command_line()])


def test_the_parallel_consumer_can_be_started_by_its_modules_name(parallel_consumer: None, bench: Bench) -> None:
    command = [sys.executable, "-m", "bench.contenders.parallel_consumer", "--order", "key", "--heap", "100m"]

    with started([*command, "--kafka", bench.kafka], bench.directory, name="by-name") as child:
        assert child.wait(60) == 2
        assert "--topic is missing" in child.last_words()


def test_the_parallel_consumer_is_compiled_once(parallel_consumer: None) -> None:
    classes = Path(class_path().partition(":")[0])
    made = classes.stat().st_mtime_ns

    assert class_path().startswith(f"{classes}:")
    assert classes.stat().st_mtime_ns == made


@pytest.fixture
def log(bench: Bench, names: Names, topics: Topics) -> WaitLog:
    """A wait topic with a few hundred registrations, some of which stay open."""
    own = WaitLog(names("wait"), waits=300, tombstone_after=100, left_open_every=10)
    topics.delete_at_end(own.topic, own.dead_letter_topic)
    fill(bench, own)
    return own


@pytest.mark.timeout(600)
@pytest.mark.parametrize("buffer", [True, False])
def test_debeziums_sink_reads_the_whole_topic(
    debezium: None, bench: Bench, topics: Topics, log: WaitLog, buffer: bool
) -> None:
    topics.delete_at_end(f"{log.topic}.unreadable")

    figures = measure_debezium(
        bench,
        log.topic,
        log.records,
        reduction_buffer=buffer,
        rewrite_inserts=buffer,
        waits=log.waits,
        left_open=log.left_open,
    )

    require_all_done(figures, log)
    assert figures["rows_inserted"] == log.waits or buffer


def test_a_sink_of_a_row_at_a_time_reads_the_whole_topic(bench: Bench, log: WaitLog) -> None:
    figures = measure_row_at_a_time(bench, log.topic, log.records, waits=log.waits, left_open=log.left_open)

    require_all_done(figures, log)
    assert figures["rows_inserted"] == log.waits


def require_all_done(figures: Figures, log: WaitLog) -> None:
    """Check what every peer of the sink must have done."""
    assert figures["records_done"] == log.records
    assert figures["records_per_s"] > 0
    assert figures["rows_inserted"] - figures["rows_deleted"] == log.left_open
    assert figures["rss_mb"] >= figures["rss_now_mb"] > 0
