"""P4, P6, P8: links from sink and sweeper to the broker break; nothing is lost, doubled or held up for long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweeper.export import Fenced, Task, fence
from sweeper.result import RowOutcome, Skip
from sweeper.sweep_task import sweep_partition
from sweeper.tables_policy import Scope
from tests.integration.sink.conftest import SinkScenario, StartSink
from tests.integration.sweeper.scenario import Scenario, export_all, ids
from tests.support.database import Database
from tests.support.settings import with_broker
from tests.support.tcp_proxy import END_TXN, INIT_PRODUCER_ID, Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError
from waitreg.local.stack import EmbeddedStack

# How long a transaction may be open, and how often the broker looks for those that were open for longer.
TRANSACTION_MS = 2_000
LOOKS_EACH_MS = "500"
QUICK = {
    "wait.partitions": 1,
    "wait.skew_allowance_s": 0,
    "kafka.request_timeout_s": 2,
    "sink.poll_interval_s": 0.1,
    "sink.restart_backoff_max_s": 0.2,
    "sink.idle_progress_s": 0.5,
    "sweeper.transaction_timeout_ms": TRANSACTION_MS,
    "sweeper.tail_timeout_s": 2,
}
ROWS = 4


def fence_or_none(task: Task) -> Fenced | None:
    """Fence; return None if a sweep would try again later."""
    try:
        return fence(task)
    except TransientError:
        return None


@pytest.fixture(scope="module")
def aborting() -> Iterator[EmbeddedStack]:
    """A stack whose broker soon aborts transactions that are open for too long."""
    properties = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": LOOKS_EACH_MS}
    with EmbeddedStack(broker_properties=properties, postgres_settings={"fsync": "off"}) as running:
        yield running


@pytest.fixture
def at(aborting: EmbeddedStack) -> Scenario:
    """A wait topic with a history, seen past the link."""
    return Scenario.made(Topics(aborting.bootstrap_servers), Database(aborting.postgres_url), QUICK)


@pytest.fixture
def link(at: Scenario) -> Iterator[KafkaProxy]:
    """What a service reaches the broker by."""
    with KafkaProxy(at.topics.bootstrap) as own:
        yield own


@pytest.mark.fault("F82")
def test_a_sink_whose_link_is_cut_or_stalled_continues(link: KafkaProxy, at: Scenario, start_sink: StartSink) -> None:
    log = SinkScenario(at.settings, at.topics, at.database, start_sink)
    sink = start_sink(with_broker(at.settings, link.address)).wait_ready()
    log.change_and_wait("at first")
    assert link.cut() > 0
    log.change_and_wait("after the cut")
    for break_link in (link.half_open, link.stall):
        break_link()
        log.change()
        wait_until(lambda: not sink.service.telemetry.ready().ok, what="not being ready while nothing is answered")
        assert link.figures.bytes_held_back > 0
        link.flow()
        log.wait_applied_once("when the link flows again")
    assert not sink.ended
    sink.stop()


@pytest.mark.fault("F83")
def test_a_sweeper_whose_link_breaks_exports_each_row_in_the_next_sweep(link: KafkaProxy, at: Scenario) -> None:
    behind = at.through(link.address)
    due, topic = at.due(ROWS), at.topic()
    for break_link in (link.stall, link.half_open):
        break_link()
        left = sweep_partition(Scope(behind.settings, topic), 0)
        link.flow()
        # A request to fence that was held back takes effect now, and not while the next sweep exports.
        wait_until(lambda: not link.open_with(INIT_PRODUCER_ID), what="the answer to what was held back")
        assert (left.counts[RowOutcome.EXPORTED], left.skip) == (0, Skip.UNAVAILABLE), left.reason
    assert link.figures.bytes_held_back > 0
    with behind.export(chunk_rows=1) as task:
        fenced = wait_until(lambda: fence_or_none(task), what="the broker leads the transactions again")
        chunks = fenced.snapshot().read_tail().chunks()
        exported = next(chunks).export()
        assert link.cut() > 0
        exported += export_all(chunks)
    assert exported == {"exported": ROWS}, "the client connects again"
    assert at.sweep().counts[RowOutcome.SUPERSEDED] == ROWS
    assert at.dead_lettered_ids() == ids(due)


@pytest.mark.fault("F84")
def test_a_sweeper_cut_off_in_its_transaction_blocks_readers_briefly(at: Scenario) -> None:
    due = at.due(ROWS)
    fate = lambda request: Fate.LOSE_REQUEST if request == END_TXN else Fate.PASS  # noqa: E731
    with KafkaProxy(at.settings.kafka.bootstrap_servers, fate) as proxy:
        behind = at.through(proxy.bootstrap_servers)
        with behind.export(chunk_rows=1) as task:
            chunks = fence(task).snapshot().read_tail().chunks()
            with pytest.raises(TransientError, match="committing"):
                next(chunks).export()
            with pytest.raises(RuntimeError, match="start again at the fence"):
                next(chunks).export()
        assert proxy.lost.is_set()
        # No client fences or aborts it: the broker does, and readers continue.
        at.topics.wait_settled(at.settings.wait.topic)
        assert at.dead_letters() == []
    assert at.sweep().counts[RowOutcome.EXPORTED] == ROWS
    assert at.dead_lettered_ids() == ids(due)
