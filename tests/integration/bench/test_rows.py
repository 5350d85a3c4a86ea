"""Every row and every contender of the benchmark does its work, at a size that says nothing about its speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.__main__ import ROWS
from bench.against import compare
from bench.contenders import callers, flows
from bench.contenders.callers import Caller, Work, calling
from bench.contenders.flows import Flow, Window, contender
from bench.contenders.java_programs import jars_directory
from bench.contenders.load import Share, fill
from bench.contenders.our_redrive import measure_redrive
from bench.contenders.wait_log import WaitLog
from bench.harness.play import Turn, play
from bench.harness.report import judged
from bench.harness.row import HERE, ROOT, Bench, Case, Contender, Round, Row
from bench.rows.calls import COMPARED
from bench.rows.sink import BUFFERED
from tests.support.chosen_stack import skips_are_failures
from tests.support.connect_worker import plugin_jar
from tests.support.naming import Names
from tests.support.stack import Stack
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.java.jars import CONNECT_JAR_KINDS, jar_directory

RECORDS, FROM, IN_FLIGHT = 300, 50, 20
# Far more than are called for.
CALLED_RECORDS = 60_000
MIXTURE = (Share(10, 30), Share(90, 5))
ALL = [
    *(flows.REGISTRY, flows.DEFERRED, flows.OFF, flows.SHARE_CONSUMER, flows.AIOKAFKA, flows.ARROYO),
    *(flows.PARALLEL_CONSUMER, flows.PARALLEL_CONSUMER_BY_KEY),
]
# What row 10's smoke leaves out; two of them need what the environment may lack.
LIBRARIES = {callers.BARE_HTTPTOOLS: "httptools", callers.BARE_LIBCURL: "pycurl"}
CALLERS = [
    caller
    for caller in COMPARED
    if caller not in (callers.HTTP_PUSH, callers.GRPC_PUSH) and find_spec(LIBRARIES.get(caller, "bench"))
]
JAVA = (flows.PARALLEL_CONSUMER, flows.PARALLEL_CONSUMER_BY_KEY)


@pytest.fixture
def bench(stack: Stack, topics: Topics, tmp_path: Path) -> Iterator[Bench]:
    """A round of the smoke; the topics of the rows are deleted at its end."""
    yield Bench(stack.bootstrap_servers, stack.postgres_url, tmp_path, quick=True)
    made = topics.admin.list_topics(timeout=30).topics
    topics.delete_at_end(*(name for name in made if name.startswith("bench.")))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", ROWS)
def test_a_row_is_measured_and_judged(number: int, bench: Bench) -> None:
    if number == 10:
        require_parallel_consumer()  # the service that is called is made of its jars
    row, round_ = ROWS[number], Round(1)

    def keep(turn: Turn) -> None:
        round_.turns.setdefault((turn.case, turn.contender), []).append(turn.figures)

    assert play(row if connect_is_there() else without_connect(row), bench, keep) == []
    assert [one.line.text for one in judged(row, [round_]) if one.failure] == []
    assert any(one.values for one in judged(row, [round_]))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("flow", ALL, ids=lambda flow: flow.name)
@pytest.mark.parametrize("handler", ["noop", "timed", "latency"])
def test_a_contender_handles_every_record(flow: Flow, handler: str, bench: Bench, topics: Topics, names: Names) -> None:
    if flow in JAVA:
        require_parallel_consumer()
    topic = names("input")
    topics.delete_at_end(topic)
    fill(bench.kafka, topic, RECORDS, MIXTURE)
    figures = contender(flow, topic, IN_FLIGHT, handler, Window(FROM, RECORDS, 120.0)).measure(bench)
    assert figures["records"] == RECORDS - FROM
    assert min(figures["seconds"], figures["cpu_s"], figures["rss_now_mb"]) > 0
    assert ("p50_ms" in figures) == (handler == "latency")
    if handler == "timed":
        # About as long as they were to sleep, and at most N at once.
        assert figures["busy_s"] >= (RECORDS - FROM) * 0.005
        assert 0 < figures["share_of_limit"] <= 1.001


@pytest.mark.timeout(300)
@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.name)
def test_a_caller_calls_a_service(caller: Caller, bench: Bench, topics: Topics, names: Names) -> None:
    require_parallel_consumer()
    topic = names("input")
    topics.delete_at_end(topic)
    fill(bench.kafka, topic, CALLED_RECORDS)
    figures = calling(caller, Work(topic, IN_FLIGHT, 0, CALLED_RECORDS, 0.5)).measure(bench)
    assert min(figures.values()) > 0


@pytest.mark.timeout(300)
def test_two_checkouts_are_compared_by_turns(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    compare(replace(ROWS[2], warm_up=None), bench, replace(HERE, name="another"), turns=2)
    said = capsys.readouterr().out
    assert "turn 2, records_per_s: this checkout" in said
    assert "records_per_s: median" in said


@pytest.mark.timeout(300)
def test_a_redrive_is_measured(bench: Bench) -> None:
    figures = measure_redrive(WaitLog("bench.redrive", 300), bench)
    assert min(figures.values()) > 0


def require_parallel_consumer() -> None:
    """Skip (CI: fail) where the Parallel Consumer's jars are missing."""
    try:
        jars_directory()
    except ConfigurationError as problem:
        if skips_are_failures():
            raise
        pytest.skip(f"Parallel Consumer NOT TESTED: {problem}")


def connect_is_there() -> bool:
    """Return whether a Kafka Connect worker with our plugin can be started; a CI machine must have one."""
    try:
        for kind in CONNECT_JAR_KINDS:
            jar_directory(kind)
        plugin_jar(ROOT)
    except ConfigurationError:
        if skips_are_failures():
            raise
        return False
    return True


def without_connect(row: Row) -> Row:
    """Return a row without the contenders that need a Kafka Connect worker."""

    def needs_none(contender: Contender) -> bool:
        return contender.name != BUFFERED

    def cases(bench: Bench) -> list[Case]:
        return [replace(case, contenders=[*filter(needs_none, case.contenders)]) for case in row.cases(bench)]

    return replace(row, cases=cases)
