"""Kafka Connect with Debezium's JDBC sink in our sink's place, put there from connect-configs/ as users do.

The worker is that of `waitreg stack up --connect`, and its connector that of `waitreg connect apply --sink debezium`
for the wait topic. Changed are:

- `use.reduction.buffer`, where it is measured without: false is Debezium's default.
- `reWriteBatchedInserts` in the connection's URL, where it is measured with: Debezium's manual asks for it along with
  the buffer, so that the driver sends statements of many rows. Without the buffer an id may come twice in one
  statement, which Postgres refuses.
- `tasks.max`, where more are faster.
- the connector's name, so that each turn reads the topic from its beginning.

Batches hold 5,000 records and polls as many (a smaller poll would cap the batch, says the manual); the default is 500.
The worker commits offsets every second, Kafka Connect's default is a minute: by that its progress is seen. Its heap is
given 1 GB; its collector is the serial one, as in the stack.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict

from bench.contenders.group_progress import follow, progress_of
from bench.contenders.our_settings import connection_to
from bench.contenders.sink_peer import LIMIT_S, Backlog, Reading, cpu_s_of, measured, memory_mb_of
from bench.contenders.table_writes import await_sessions_end
from bench.harness.process import ROOT, ProcessError
from bench.harness.row import Bench, Figures
from wait_registry.cli.connect.apply import Applying, verdict
from wait_registry.cli.connect.connector_file import Connector, own_files, read_connector
from wait_registry.cli.connect.place import require_place
from wait_registry.cli.connect.rest import ConnectRest, WorkerUnavailable
from wait_registry.cli.connect.sink_lag import sink_group
from wait_registry.cli.connect.variables import variable
from wait_registry.local.connect_worker import ConnectWorker, plugin_jar
from wait_registry.local.ports import free_ports
from wait_registry.settings.connect import ConnectSettings
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind

VERSION: Final = "debezium-connector-jdbc 3.5.0.Final, Kafka Connect 4.3.1"
LACKS: Final = (
    "No position beside the rows: offsets are committed later and to Kafka, and don't say how complete the view is "
    "(docs/decisions/0010). At least once (its manual): after a crash what came since the last commit comes again. "
    "Dead letters whose work was finished late aren't marked, and a task that has failed stays so until somebody "
    "restarts it (connect-configs/README.md)."
)
FILE: Final = "wait.sink"
# As it says in that file.
SESSIONS: Final = "wait.sink"
HEAP: Final = "1g"
LOOK_S: Final = 1.0
GONE_S: Final = 60.0
ENDING_S: Final = 120.0
POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Variant:
    """How Debezium's sink is set.

    Attributes:
        reduction_buffer: whether of each id only the last record of a batch is written.
        rewrite_inserts: whether the driver makes one statement of many rows.
        tasks: at most; the shipped file has one, and an id never leaves its partition.
    """

    reduction_buffer: bool
    rewrite_inserts: bool
    tasks: int = 1

    def __post_init__(self) -> None:
        if self.rewrite_inserts and not self.reduction_buffer:
            raise ValueError(
                "saw reWriteBatchedInserts without the reduction buffer: an id twice in a batch is refused"
            )

    def applied_to(self, connector: Connector) -> Connector:
        """Return the connector so set, under a name of its own."""
        config = dict(connector.config)
        config["tasks.max"] = str(self.tasks)
        config["use.reduction.buffer"] = str(self.reduction_buffer).lower()
        if self.rewrite_inserts:
            config["connection.url"] += "&reWriteBatchedInserts=true"
        return replace(connector, name=f"{connector.name}.{uuid.uuid4().hex[:12]}", config=config)


def measure(
    bench: Bench,
    topic: str,
    records: int,
    *,
    reduction_buffer: bool = True,
    rewrite_inserts: bool = False,
    waits: int | None = None,
    left_open: int | None = None,
    stretch: tuple[int, int] | None = None,
    limit_s: float = LIMIT_S,
    tasks: int = 1,
) -> Figures:
    """Have Debezium's sink read a wait topic into an empty view; see `Backlog`, `Variant` and `sink_peer.measured`.

    Raises:
        ProcessError: the connector doesn't run, or no longer.
        ConfigurationError: the jars aren't there; the message says what to do.
        NoProgress: it committed nothing.
        WrongView: rows are missing or left over at the end.
    """
    backlog = Backlog(topic, records, waits, left_open, stretch, limit_s)
    variant = Variant(reduction_buffer, rewrite_inserts, tasks)

    def read(settings: Settings, partitions: int) -> Reading:
        with _worker(bench) as worker:
            ours = _beside(settings, worker)
            connector = variant.applied_to(read_connector(_file(), partial(variable, settings=ours)))
            group = sink_group(connector.name, connector.config)
            with progress_of(ours.kafka, group, topic, partitions) as progress:
                with _running(ours, connector) as require_running:
                    steps = follow(progress, records, limit_s, partial(cpu_s_of, worker.pid), require_running)
                    memory = memory_mb_of(worker.pid)
                # Its task ends its batch and commits it before it lets go of Postgres.
                with connection_to(ours) as connection:
                    await_sessions_end(connection, SESSIONS, ENDING_S)
                return Reading(steps, progress.records(), memory)

    return measured(bench, backlog, SESSIONS, read)


@contextmanager
def _worker(bench: Bench) -> Iterator[ConnectWorker]:
    secret = conninfo_to_dict(bench.postgres_url).get("password")
    worker = ConnectWorker(
        bench.directory / "connect",
        free_ports(1)[0],
        bench.kafka,
        plugins=[plugin_jar(ROOT)],
        group=f"bench-connect-{uuid.uuid4().hex[:12]}",
        # A batch that is broken off is counted as written and isn't there.
        properties={"task.shutdown.graceful.timeout.ms": str(round(ENDING_S * 1000))},
        environment={} if secret is None else {"POSTGRES_PASSWORD": str(secret)},
        heap=HEAP,
        temporary=True,
    )
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()


def _beside(settings: Settings, worker: ConnectWorker) -> Settings:
    """Return the settings of a user who has a connector keep the view."""
    sink = settings.sink.model_copy(update={"kind": SinkKind.CONNECT})
    return settings.model_copy(update={"sink": sink, "connect": ConnectSettings(url=worker.url)})


@contextmanager
def _running(settings: Settings, connector: Connector) -> Iterator[Callable[[], None]]:
    """Run a connector as `waitreg connect apply` does; it is gone after the block.

    Within it, what is yielded raises ProcessError when the connector has failed: by itself it would just stand still.
    """
    require_place([connector], settings)
    rest = ConnectRest(settings.connect)
    applying = Applying(rest, settings.connect.start_timeout_s, lambda *_: None)
    applying.require_valid([connector])
    try:
        (state,) = applying.apply([connector])
        judged = verdict(state)
        if not judged.good:
            raise ProcessError(f"{connector.name}: {judged.word}: {judged.details}")
        yield _Watch(rest, connector.name).require_running
    finally:
        # A worker that has died can't remove it, and why it died is what is to be told.
        with suppress(WorkerUnavailable):
            _remove(rest, connector.name)


def _remove(rest: ConnectRest, name: str) -> None:
    rest.delete(name)
    deadline = time.monotonic() + GONE_S
    while name in rest.states() and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _file() -> Path:
    (file,) = (path for path in own_files("sink", "debezium") if path.name.startswith(FILE))
    return file


class _Watch:
    """Looks now and then whether a connector still runs."""

    def __init__(self, rest: ConnectRest, name: str) -> None:
        self._rest = rest
        self._name = name
        self._looked_at = time.monotonic()

    def require_running(self) -> None:
        """Raise ProcessError when it has failed."""
        if time.monotonic() - self._looked_at < LOOK_S:
            return
        self._looked_at = time.monotonic()
        state = self._rest.states().get(self._name)
        if state is None or state.failed:
            raise ProcessError(f"{self._name}: {'gone' if state is None else '; '.join(state.failures())}")
