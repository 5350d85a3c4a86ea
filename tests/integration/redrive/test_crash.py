"""Whatever ends an executor, and at whatever step: each delivery is sent once, and the job's numbers add up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from redrive import executor as module
from redrive.executor import Executor
from tests.integration.redrive.dying import STEPS
from tests.integration.redrive.scenario import Scenario
from tests.support.running_thread import RunningThread
from tests.support.settings import with_broker
from tests.support.tcp_proxy import END_TXN, Fate, KafkaProxy
from wait_registry.errors import FencedError
from wait_registry.kafka.fenced_producer import FencedProducer
from wait_registry.local.environment import as_environment
from wait_registry.records.operation import Mark, Requested, State

ROOT = Path(__file__).parents[3]
LETTERS = 5


def killed(at: Scenario, job: Requested, step: str, when: str) -> None:
    """Run an executor in a process of its own that dies at a step."""
    command = [sys.executable, "-m", "tests.integration.redrive.dying", job.model_dump_json(), step, when]
    environment = {**os.environ, **as_environment(at.settings)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def require_each_once(at: Scenario) -> None:
    """Fail unless each dead letter was sent once, and has one mark that says where."""
    sent = at.sent()
    assert sorted(record.value or b"" for record in sent) == [b"value %d" % number for number in range(LETTERS)]
    marks = [mark for mark in at.events() if isinstance(mark, Mark)]
    assert sorted(mark.target or ("", 0, 0) for mark in marks) == sorted(record.place for record in sent)


@pytest.mark.guarantee("R1.3")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_after_a_kill_at_any_step_the_job_goes_on(at: Scenario, step: str, when: str) -> None:
    at.dead_letters(LETTERS)
    at.read()
    job = at.request(rate=2.0).job
    killed(at, job, step, when)
    ended = at.execute(job)
    assert (ended.state, dict(ended.counts)) == (State.FINISHED, {"redriven": LETTERS})
    require_each_once(at)
    at.read_operations()
    assert at.rows("select state, counts from operation") == [("finished", {"redriven": LETTERS})]


@pytest.mark.guarantee("R1.2")
def test_an_executor_that_wakes_up_late_can_commit_nothing(at: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    at.dead_letters(LETTERS)
    at.read()
    job = at.request().job
    reached, go_on = threading.Event(), threading.Event()

    class Frozen(FencedProducer):
        """Stops when a chunk was judged, before its transaction begins."""

        def write(self, parts: Any, limits: Any, doing: str) -> None:
            if not doing.startswith("redriving 0"):
                reached.set()
                assert go_on.wait(60)
            super().write(parts, limits, doing)

    with monkeypatch.context() as patch:
        patch.setattr(module, "FencedProducer", Frozen)
        zombie = RunningThread(Executor(at.settings, job, threading.Event(), lambda _: None).run)
        assert reached.wait(60)
    ended = at.execute(job)
    go_on.set()
    zombie.wait_ended()
    assert isinstance(zombie.error, FencedError)
    assert dict(ended.counts) == {"redriven": LETTERS}
    require_each_once(at)


@pytest.mark.guarantee("R1.8")
@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.LOSE_REQUEST])
def test_after_a_commit_without_an_answer_nothing_is_sent_again(at: Scenario, fate: Fate) -> None:
    at.dead_letters(LETTERS)
    at.read()
    job = at.request(rate=2.0).job
    ends = 0

    def decide(api_key: int) -> Fate:
        nonlocal ends
        ends += api_key == END_TXN
        return fate if api_key == END_TXN and ends == 2 else Fate.PASS

    impatient = at.settings.redrive.model_copy(update={"transaction_timeout_ms": 3_000})
    with KafkaProxy(at.settings.kafka.bootstrap_servers, decide) as proxy:
        settings = with_broker(at.settings, proxy.bootstrap_servers).model_copy(update={"redrive": impatient})
        ended = Executor(settings, job, threading.Event(), lambda _: None).run()
        assert proxy.lost.is_set()
    assert dict(ended.counts) == {"redriven": LETTERS}
    require_each_once(at)
