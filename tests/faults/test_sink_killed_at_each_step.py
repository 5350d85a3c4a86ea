"""P6, P8: wherever in a batch the driver dies, its JVM or all of it, the next sink makes the tables exact, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.integration.sink.commit_cut import CommitCut
from tests.integration.sink.conftest import SinkScenario, StartSink
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.support.network import behind_link
from tests.support.processes import Service, runs
from tests.support.settings import with_broker
from tests.support.shared_services import start_shared
from tests.support.tcp_proxy import FETCH, LIST_OFFSETS, Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

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
