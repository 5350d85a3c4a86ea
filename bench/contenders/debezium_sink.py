"""Kafka Connect with Debezium's JDBC sink in our sink's place, put there from connect-configs/ as users do.

The worker is that of the tests, and its connector that of `waitreg connect print wait.sink.debezium`. Changed are:

- `use.reduction.buffer`, where it is measured without: false is Debezium's default.
- `reWriteBatchedInserts` in the connection's URL, where it is measured with: Debezium's manual asks for it along with
  the buffer. Without the buffer an ID may come twice in one statement, which Postgres refuses.
- `tasks.max`: the best of one, two and four on two cores, which is one with the buffer and four without.
- the connector's name, so that each turn reads the topic from its beginning.

The worker commits offsets every second (Kafka Connect's default is a minute): its progress is seen by that. Its heap is
1 GB.
"""

from __future__ import annotations

import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from confluent_kafka import Consumer
from psycopg.conninfo import conninfo_to_dict

from bench.contenders.load import committed
from bench.contenders.meter import NS_PER_S, cpu_ns_of, memory_of
from bench.contenders.product import connection_to, fresh_schema, require_open_rows
from bench.contenders.sink_pace import Step, await_sessions_end, pace, stretch, writes, written
from bench.contenders.wait_log import WaitLog
from bench.harness.process import BYTES_PER_MB, ProcessError
from bench.harness.row import ROOT, Bench, Figures
from tests.support.connect_worker import ConnectWorker, plugin_jar
from wait_registry.kafka.clients import consumer_config
from wait_registry.settings.connect import ConnectSettings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector, fill_in
from waitreg.connect.rest import ConnectRest, WorkerUnavailable
from waitreg.connect.roles import sink_group
from waitreg.local.ports import free_ports

# The file of the connector, and the name of its sessions in Postgres.
NAME: Final = "wait.sink"
UNBUFFERED_TASKS: Final = 4
LOOK_S: Final = 1.0
GONE_S: Final = 60.0
ENDING_S: Final = 120.0
POLL_S: Final = 0.25
COMMITTED_POLL_S: Final = 0.1
START_S: Final = 120.0
# How long it reads after its first commit, s, and from when on it counts as warm.
PEER_S: Final = 30.0
WARM_S: Final = 10.0


def measure(buffered: bool, log: WaitLog, bench: Bench) -> Figures:
    """Have Debezium's sink, with or without its reduction buffer, read a wait log into empty tables for a while."""
    with fresh_schema(bench, log.topic, log.partitions) as settings, connection_to(settings) as connection:
        before = writes(connection, settings)
        with _worker(bench) as worker:
            sink = settings.sink.model_copy(update={"kind": SinkKind.CONNECT})
            ours = settings.model_copy(update={"sink": sink, "connect": ConnectSettings(url=worker.url)})
            (filled,) = fill_in([f"{NAME}.debezium"], ours)
            connector = _tuned(filled, buffered)
            group = Consumer(consumer_config(ours.kafka, **{"group.id": sink_group(connector.name, connector.config)}))
            with _running(ours, connector) as require_running:
                steps = _follow(group, log, worker.pid, require_running)
            rss_mb = memory_of(worker.pid)[1] / BYTES_PER_MB
        await_sessions_end(connection, NAME)
        done, after = committed(group, log.topic, log.partitions), writes(connection, settings)
        if done >= log.records:
            require_open_rows(connection, log.left_open)
    first, last = log.measured
    if done < last:
        late = [step for step in steps if step.at_s >= steps[1].at_s + WARM_S]
        steps, first, last = late if len(late) > 1 else steps, 0, done
    figures = {**pace(*stretch(steps, first, last)), **written(before, after, log.waits * done / log.records)}
    return {**figures, "records_done": done, "rss_mb": rss_mb}


def _follow(group: Consumer, log: WaitLog, pid: int, require_running: Callable[[], None]) -> list[Step]:
    """Return every step until the group has committed all of a log, or for a while after the first."""

    def step(done: int) -> Step:
        return Step(time.monotonic(), done, cpu_ns_of(pid) / NS_PER_S)

    steps, deadline = [step(0)], time.monotonic() + START_S
    while steps[-1].records < log.records and time.monotonic() < deadline:
        require_running()
        if (done := committed(group, log.topic, log.partitions)) > steps[-1].records:
            deadline = time.monotonic() + PEER_S if len(steps) == 1 else deadline
            steps.append(step(done))
        time.sleep(COMMITTED_POLL_S)
    if len(steps) == 1:
        raise TimeoutError(f"nothing was committed in {START_S:g} s")
    return steps


def _tuned(connector: Connector, buffered: bool) -> Connector:
    config = dict(connector.config)
    config["tasks.max"] = str(1 if buffered else UNBUFFERED_TASKS)
    config["use.reduction.buffer"] = str(buffered).lower()
    config["connection.url"] += "&reWriteBatchedInserts=true" if buffered else ""
    return replace(connector, name=f"{connector.name}.{uuid.uuid4().hex[:12]}", config=config)


class _Worker(ConnectWorker):
    heap = "1g"


@contextmanager
def _worker(bench: Bench) -> Iterator[ConnectWorker]:
    secret = conninfo_to_dict(bench.postgres_url).get("password")
    worker = _Worker(
        bench.directory / "connect",
        free_ports(1)[0],
        {
            "bootstrap.servers": bench.kafka,
            "group.id": f"bench-connect-{uuid.uuid4().hex[:12]}",
            # An interrupted batch counts as written and isn't there.
            "task.shutdown.graceful.timeout.ms": str(round(ENDING_S * 1000)),
        },
        plugins=[plugin_jar(ROOT)],
        environment={} if secret is None else {"POSTGRES_PASSWORD": str(secret)},
        temporary=True,
    )
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()


@contextmanager
def _running(settings: Settings, connector: Connector) -> Iterator[Callable[[], None]]:
    """Run a connector; it has ended its batch and is gone after the block.

    What is yielded raises ProcessError when the connector has failed, which the worker survives.
    """
    rest, address = ConnectRest(settings.connect), f"{settings.connect.url}/connectors/{connector.name}"
    looked_at = time.monotonic()

    def require_running() -> None:
        nonlocal looked_at
        if time.monotonic() - looked_at > LOOK_S:
            looked_at = time.monotonic()
            state = rest.states().get(connector.name)
            if state is None or state.failed:
                raise ProcessError(f"{connector.name}: {'gone' if state is None else '; '.join(state.failures())}")

    try:
        _ask("PUT", f"{address}/config", connector.as_json().encode())
        deadline = time.monotonic() + START_S
        while not ((state := rest.states().get(connector.name)) and state.runs):
            if (state and state.failed) or time.monotonic() > deadline:
                raise ProcessError(f"{connector.name} doesn't run: {'; '.join(state.failures() if state else ())}")
            time.sleep(POLL_S)
        yield require_running
    finally:
        with suppress(WorkerUnavailable, OSError):  # a worker that has died can't remove it; what killed it is raised
            _ask("DELETE", address)
            deadline = time.monotonic() + GONE_S
            while connector.name in rest.states() and time.monotonic() < deadline:
                time.sleep(POLL_S)


def _ask(method: str, url: str, body: bytes | None = None) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    urllib.request.urlopen(request, timeout=START_S).close()
