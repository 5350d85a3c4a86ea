"""A sink or a sweeper is killed or frozen at each step of its transaction: its successor is exact, and exports once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from sweeper.result import RowOutcome
from tests.integration.sink.commit_cut import CommitCut
from tests.integration.sink.conftest import SinkScenario, StartSink
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, ids
from tests.support.network import behind_link
from tests.support.processes import Service, runs
from tests.support.settings import with_broker
from tests.support.shared_services import start_shared
from tests.support.tcp_proxy import END_TXN, FETCH, LIST_OFFSETS, Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings
from waitreg.local.guard import process_tree

Make = Callable[[], SinkScenario]


@dataclass
class StoppedSink:
    """A sink and what stops it.

    ``reached`` says, from outside, whether it is at the step; ``stop`` has the next batch stop there, ``release``
    lets the rest continue.
    """

    step: str
    at: SinkScenario
    settings: Settings
    stop: Callable[[], object]
    reached: Callable[[], bool]
    release: Callable[[], object]


@contextmanager
def stopped_sinks(make: Make) -> Iterator[list[StoppedSink]]:
    """Describe a sink for each step of a batch; they aren't started yet."""
    with ExitStack() as ended:
        sinks = [
            _at_a_request(make, ended, "while it plans", LIST_OFFSETS),
            _at_a_request(make, ended, "while it reads", FETCH),
            _in_the_transaction(make, ended),
            _after_the_commit(make, ended),
        ]
        try:
            yield sinks
        finally:
            for sink in sinks:
                sink.release()


def _at_a_request(make: Make, ended: ExitStack, step: str, request: int) -> StoppedSink:
    at = make()
    chosen: list[int] = []
    decide = lambda api: Fate.HOLD if api in chosen else Fate.PASS  # noqa: E731
    proxy = ended.enter_context(KafkaProxy(at.settings.kafka.bootstrap_servers, decide))
    return StoppedSink(
        step,
        at,
        with_broker(at.settings, proxy.bootstrap_servers),
        stop=partial(chosen.append, request),
        reached=proxy.held.is_set,
        release=proxy.let_go,
    )


def _in_the_transaction(make: Make, ended: ExitStack) -> StoppedSink:
    step = "inside the transaction"
    at = make()
    lock = ended.enter_context(at.database.connect(at.settings))
    lock.autocommit = False
    waiting = "select count(*) from pg_locks where relation = 'wait'::regclass and not granted"
    return StoppedSink(
        step,
        at,
        at.settings,
        stop=lambda: lock.execute("lock table wait in share mode"),
        reached=lambda: at.rows(waiting) == [(1,)],
        release=lock.rollback,
    )


def _after_the_commit(make: Make, ended: ExitStack) -> StoppedSink:
    step = "after COMMIT"
    at = make()
    cut = ended.enter_context(CommitCut(at.database.url, commit_arrives=True, hangs=True))
    return StoppedSink(
        step, at, behind_link(at.settings, cut), stop=cut.armed.set, reached=cut.happened.is_set, release=lambda: None
    )


@pytest.mark.fault("F55")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("killed", ["process", "jvm"])
def test_the_next_sink_is_exact_whichever_step_the_driver_died_at(
    scenario: ScenarioFactory, start_sink: StartSink, tmp_path: Path, killed: str
) -> None:
    def make() -> SinkScenario:
        patient = {"sink.poll_interval_s": 0.1, "sink.idle_progress_s": 60, "spark.master": "local[4]"}
        at = scenario(patient)
        return SinkScenario(at.settings, at.topics, at.database, start_sink)

    with stopped_sinks(make) as sinks:
        services = start_shared("sink", [sink.settings for sink in sinks], tmp_path)
        for sink, service in zip(sinks, services, strict=True):
            sink.at.change()
            service.wait_ready()
        for sink in sinks:
            wait_until(sink.at.is_exact, what=f"the first rows, {sink.step}")
            sink.stop()
            sink.at.change()
        for sink in sinks:
            wait_until(sink.reached, what=f"the stop {sink.step}")
        (kill if killed == "process" else kill_the_jvm)(services[0])
    started = [start_sink(sink.at.settings, once=True) for sink in sinks]
    for sink, again in zip(sinks, started, strict=True):
        assert again.wait_ended() is None, sink.step
        assert sink.at.is_exact(), sink.step
        assert sink.at.rows("select * from late_outcome") == [], f"no tombstone was applied twice, {sink.step}"


def kill(service: Service) -> None:
    """Kill the process and its JVM at once."""
    service.kill()
    assert service.process.returncode == -9


def kill_the_jvm(service: Service) -> None:
    """Kill its JVM and wait for the process to end over it."""
    [java] = [child for child in psutil.Process(service.pid).children() if child.name() == "java"]
    java.kill()
    assert service.wait() == 1
    assert not runs(java)


ROWS = 5
ROUNDS, ROWS_OF_A_ROUND = 3, 40
START_S = 180.0


@dataclass
class StoppedSweeper:
    """A sweeper, what it is to export, and what stops it at its step; `decided` of the rows are exported by then."""

    step: str
    at: Scenario
    settings: Settings
    reached: Callable[[], bool]
    release: Callable[[], object]
    decided: int
    due: list[Registered]

    def exported_once(self) -> bool:
        """Return whether each row has exactly one dead letter."""
        return self.at.dead_lettered_ids() == ids(self.due)

    def fenced(self) -> bool:
        """Return whether one of its sweeps has ended fenced."""
        rows = self.at.database.rows(self.at.settings, "select skipped->0->>'skip' from sweep")
        return ("fenced",) in rows


def with_rows(scenario: ScenarioFactory) -> tuple[Scenario, list[Registered]]:
    """Return tables with due rows, and a log that continues behind them, so that there is a tail to read."""
    at = scenario({"sweeper.interval_s": 2, "spark.master": "local[5]"})
    due = at.due(ROWS)
    at.register([at.wait_record(ROWS, expires_in_ms=600_000)])
    return at, due


@contextmanager
def stopped_sweepers(scenario: ScenarioFactory) -> Iterator[list[StoppedSweeper]]:
    with ExitStack() as ended:

        def at_a_request(step: str, request: int, fate: Fate, decided: int) -> StoppedSweeper:
            at, due = with_rows(scenario)
            decide = lambda api: fate if api == request else Fate.PASS  # noqa: E731
            proxy = ended.enter_context(KafkaProxy(at.settings.kafka.bootstrap_servers, decide))
            settings = with_broker(at.settings, proxy.bootstrap_servers)
            stopped = proxy.held if fate is Fate.HOLD else proxy.lost
            return StoppedSweeper(step, at, settings, stopped.is_set, proxy.let_go, decided, due)

        sweepers = [
            at_a_request("frozen in it", END_TXN, Fate.HOLD, 0),
            at_a_request("before it", FETCH, Fate.HOLD, 0),
            at_a_request("inside it", END_TXN, Fate.LOSE_REQUEST, 0),
            at_a_request("after it, unanswered", END_TXN, Fate.LOSE_ANSWER, ROWS),
            _before_it_is_written_down(scenario, ended),
        ]
        try:
            yield sweepers
        finally:
            for sweeper in sweepers:
                sweeper.release()


def _before_it_is_written_down(scenario: ScenarioFactory, ended: ExitStack) -> StoppedSweeper:
    at, due = with_rows(scenario)
    lock = ended.enter_context(at.database.connect(at.settings))
    lock.autocommit = False
    lock.execute("lock table sweep in share mode")
    waiting = "select count(*) from pg_locks where relation = 'sweep'::regclass and not granted"
    reached = lambda: at.database.rows(at.settings, waiting) == [(1,)]  # noqa: E731
    return StoppedSweeper("after it, not written down", at, at.settings, reached, lock.rollback, ROWS, due)


@pytest.mark.fault("F67")
@pytest.mark.timeout(400)
def test_rows_of_a_killed_or_frozen_sweeper_are_exported_once(scenario: ScenarioFactory, tmp_path: Path) -> None:
    with stopped_sweepers(scenario) as sweepers:
        service = start_shared("sweeper", [sweeper.settings for sweeper in sweepers], tmp_path)[0]
        try:
            for sweeper in sweepers:
                wait_until(partial(reached, sweeper, service), START_S, f"the stop {sweeper.step}")
            frozen, *killed = sweepers
            service.pause()
            wait_until(lambda: stopped(service), what="its sleep")
            # Its fence ends the sleeper's transaction, which would be open for 30 s.
            assert frozen.at.sweep(tail_timeout_s=20).counts == {"exported": ROWS}, "another sweeps while it sleeps"
            frozen.release()
            service.resume()
            wait_until(frozen.fenced, what="the sleeper's end, fenced")
            assert all(sweeper.reached() for sweeper in killed)
        finally:
            service.kill()
        assert service.process.returncode == -9
        for sweeper in killed:
            sweeper.release()
            again = sweeper.at.sweep()
            wanted = Counter({RowOutcome.EXPORTED: ROWS - sweeper.decided, RowOutcome.SUPERSEDED: sweeper.decided})
            assert again.counts == wanted, sweeper.step
        assert [sweeper.step for sweeper in sweepers if not sweeper.exported_once()] == []


def reached(sweeper: StoppedSweeper, service: Service) -> bool:
    assert service.process.poll() is None, service.log.read_text()
    return sweeper.reached()


def stopped(service: Service) -> bool:
    """Return whether it and all its children are frozen; one that had ended before doesn't count."""
    return {each.status() for each in process_tree(service.pid) if runs(each)} == {psutil.STATUS_STOPPED}


@pytest.mark.fault("F81")
def test_two_sweepers_at_once_export_each_row_once(scenario: ScenarioFactory, tmp_path: Path) -> None:
    at = scenario({"sweeper.interval_s": 0.1, "sweeper.chunk_rows": 5})
    at.show()  # a sink's first position, without which nothing is exported
    due: list[Registered] = []
    sweepers = [service for _ in range(2) for service in start_shared("sweeping", [at.settings], tmp_path)]
    swept = "select count(distinct instance) from sweep where result = 'done'"
    try:
        wait_until(lambda: at.database.rows(at.settings, swept) == [(2,)], what="a sweep of each")
        for _ in range(ROUNDS):
            due.extend(at.due([at.wait_record(len(due) + number) for number in range(ROWS_OF_A_ROUND)]))
            wait_until(lambda: len(at.dead_letters()) >= len(due), what="the exports")
        assert [sweeper.process.poll() for sweeper in sweepers] == [None, None]
    finally:
        for sweeper in sweepers:
            sweeper.kill()
    assert at.dead_lettered_ids() == ids(due)
