"""After a crash at any step, or with its transactional ID forgotten, a job continues: each delivery once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettingsFactory
from tests.integration.redrive.dying import STEPS, killed
from tests.integration.redrive.scenario import Scenario
from tests.support.database import Database
from tests.support.running_thread import RunningThread
from tests.support.settings import changed, with_broker
from tests.support.tcp_proxy import END_TXN, Fate, KafkaProxy
from tests.support.topics import Topics
from wait_registry.errors import FencedError
from wait_registry.kafka.fenced_producer import FencedProducer
from wait_registry.records.operation import Mark, State
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import free_ports
from waitreg.redrive import execution
from waitreg.redrive.executor import Executor

LETTERS = 5


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
    at.show_dead_letters(LETTERS)
    job = at.request(rate=2.0).job
    killed(at.settings, job, step, when)
    ended = at.execute(job)
    assert (ended.state, dict(ended.counts)) == (State.FINISHED, {"redriven": LETTERS})
    require_each_once(at)
    at.read_operations()
    assert at.rows("select state, counts from operation") == [("finished", {"redriven": LETTERS})]


@pytest.mark.guarantee("R1.2")
def test_an_executor_that_wakes_up_late_can_commit_nothing(at: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    at.show_dead_letters(LETTERS)
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
        patch.setattr(execution, "FencedProducer", Frozen)
        zombie = RunningThread(Executor(at.settings, job, threading.Event(), lambda _: None).run)
        assert reached.wait(60)
    ended = at.execute(job)
    go_on.set()
    zombie.wait_ended()
    assert isinstance(zombie.error, FencedError) and f"--resume {job.job} --send" in str(zombie.error)
    assert dict(ended.counts) == {"redriven": LETTERS}
    require_each_once(at)


@pytest.mark.guarantee("R1.8")
@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.LOSE_REQUEST])
def test_after_a_commit_without_an_answer_nothing_is_sent_again(at: Scenario, fate: Fate) -> None:
    at.show_dead_letters(LETTERS)
    job = at.request(rate=2.0).job
    ends = 0

    def decide(api_key: int) -> Fate:
        nonlocal ends
        ends += api_key == END_TXN
        return fate if api_key == END_TXN and ends == 2 else Fate.PASS

    with KafkaProxy(at.settings.kafka.bootstrap_servers, decide) as proxy:
        settings = changed(with_broker(at.settings, proxy.bootstrap_servers), "redrive", transaction_timeout_ms=3_000)
        ended = Executor(settings, job, threading.Event(), lambda _: None).run()
        assert proxy.lost.is_set()
    assert dict(ended.counts) == {"redriven": LETTERS}
    require_each_once(at)


FORGETFUL = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
}


def test_a_job_whose_id_is_forgotten_begins_again_at_the_fence(
    tmp_path: Path, settings_for: SettingsFactory, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    clients, controller = free_ports(2)
    with EmbeddedBroker(tmp_path, (clients, controller), properties=FORGETFUL, temporary=True) as broker:
        settings = settings_for({"kafka.bootstrap_servers": broker.bootstrap_servers})
        topics = Topics(broker.bootstrap_servers)
        topics.create_own(settings)
        database.install(settings)
        at = Scenario(settings, topics, database)
        at.show_dead_letters(3)
        ended = at.execute(at.request(rate=0.5).job)
        assert (ended.state, dict(ended.counts)) == (State.FINISHED, {"redriven": 3})
        assert sorted(record.value or b"" for record in at.sent()) == [b"value 0", b"value 1", b"value 2"]
    assert "the job waits for" in caplog.text, "no transactional ID was forgotten"
