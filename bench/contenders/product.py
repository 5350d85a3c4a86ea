"""The product as a user runs it, of whichever checkout is measured: its settings, its tables, its running services."""

from __future__ import annotations

import os
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
from psycopg import sql
from psycopg.rows import TupleRow
from pydantic import SecretStr

from bench.contenders.flow_program import FlowArguments
from bench.contenders.meter import memory_of
from bench.contenders.metered_handler import HANDLER
from bench.harness.process import BYTES_PER_MB, Child, started
from bench.harness.row import Bench
from wait_registry.postgres.connection import connect
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings
from wait_registry.settings.tree import Settings
from waitreg.local.environment import as_environment
from waitreg.local.guard import process_tree
from waitreg.local.ports import LOOPBACK, free_ports

READY_S: Final = 120.0
COMMAND_S: Final = 120.0
POLL_S: Final = 0.02
# A sweep is waited for: at the default of 30 s a measurement would be nothing but waiting.
SWEEP_INTERVAL_S: Final = 1.0
# More than any of these settings asks for (a small N makes records wait); nothing is renewed meanwhile.
TTL_S: Final = 86_400
PROCESSOR_OPTIONS: Final = ("linger_ms", "handler_timeout_s")
OPEN_ROWS: Final = "select count(*) from wait"


def settings_of(bench: Bench, topic: str, partitions: int = 4, schema: str = "public") -> Settings:
    """Return settings of sink and sweeper: everything else is the product's default."""
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=bench.kafka),
        wait=WaitTopicSettings(topic=topic, partitions=partitions, replication_factor=1, min_insync_replicas=1),
        dead_letter=DeadLetterSettings(topic=f"{topic}.dlq"),
        postgres=PostgresSettings(url=SecretStr(bench.postgres_url), schema=schema),
        sweeper=SweeperSettings(interval_s=SWEEP_INTERVAL_S),
    )


def processor_settings(arguments: FlowArguments, **own: Any) -> Settings:
    """Return the settings of a processor with topics of its own."""
    options = {"handler": HANDLER, **own}
    options |= {name: arguments.options[name] for name in PROCESSOR_OPTIONS if name in arguments.options}
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=arguments.kafka),
        wait=WaitTopicSettings(
            topic=f"{arguments.group}.wait", partitions=4, replication_factor=1, min_insync_replicas=1
        ),
        dead_letter=DeadLetterSettings(topic=f"{arguments.group}.dlq", partitions=1),
        processor=ProcessorSettings(
            group=arguments.group,
            topics=(arguments.topic,),
            max_in_flight=arguments.in_flight,
            ttl_s=TTL_S,
            **options,
        ),
    )


def waitreg(bench: Bench, variables: Mapping[str, str], *arguments: str) -> None:
    """Run a command of the product that is measured; raises ProcessError when it fails."""
    with started([str(bench.product.waitreg), *arguments], bench.directory, variables, name="waitreg") as child:
        child.run(COMMAND_S)


@contextmanager
def fresh_schema(bench: Bench, topic: str, partitions: int = 4) -> Iterator[Settings]:
    """Install tables of a turn's own and drop them at the end: what earlier turns wrote doesn't disturb this one."""
    settings = settings_of(bench, topic, partitions, f"bench_{uuid.uuid4().hex[:12]}")
    install(bench, settings)
    try:
        yield settings
    finally:
        drop(settings)


def install(bench: Bench, settings: Settings) -> None:
    """Make the settings' tables by `waitreg db migrate`, and write the checkpoint that earlier turns made necessary."""
    waitreg(bench, as_environment(settings), "db", "migrate")
    with connection_to(settings) as connection:
        connection.execute("checkpoint")


def drop(settings: Settings) -> None:
    """Drop the settings' tables."""
    with connection_to(settings) as connection:
        name = sql.Identifier(settings.postgres.schema_name)
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(name))


def connection_to(settings: Settings) -> psycopg.Connection[TupleRow]:
    """Open a connection to the settings' tables, in autocommit."""
    return connect(settings.postgres, autocommit=True, application_name="bench")


def count(connection: psycopg.Connection[TupleRow], query: str, *parameters: object) -> int:
    """Return the one number that a query answers."""
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return int(row[0]) if row else 0


def require_open_rows(connection: psycopg.Connection[TupleRow], expected: int) -> None:
    """Raise RuntimeError unless the table `wait` holds this number of rows."""
    if (found := count(connection, OPEN_ROWS)) != expected:
        raise RuntimeError(f"{found} rows are left in wait, the log says {expected}")


class Service:
    """A running service: Python, and the JVM of Spark where it needs one."""

    def __init__(self, child: Child, port: int) -> None:
        self._child = child
        self.address = f"http://{LOOPBACK}:{port}"
        self.stop = child.stop

    def await_ready(self) -> None:
        """Wait until /health/ready says yes: the first batch, be it empty, has been written."""
        self.wait_for(self._is_ready, "to be ready", READY_S)

    def wait_for(self, done: Callable[[], bool], what: str, deadline_s: float, poll_s: float = POLL_S) -> None:
        """Poll until something is so; raises ProcessError when the service ended or takes longer."""
        deadline = time.monotonic() + deadline_s
        while not done():
            self._child.require_running()
            if time.monotonic() > deadline:
                raise self._child.error(f"took over {deadline_s:g} s {what}")
            time.sleep(poll_s)

    def cpu_s(self) -> float:
        """Return the CPU time of its processes, user and system, all threads, s."""
        return cpu_s_of_all(process_tree(self._child.pid))

    def driver(self) -> list[psutil.Process]:
        """Return its own Python process and its JVM, without the Python workers that Spark starts."""
        tree = process_tree(self._child.pid)
        return tree[:1] + [process for process in tree[1:] if _is_java(process)]

    def peak_mb(self) -> dict[str, float]:
        """Return the most resident memory that JVM and Python have had (VmHWM), MB of 10^6 bytes, and the sum."""
        peaks = {"jvm_peak_mb": 0.0, "python_peak_mb": 0.0}
        for process in process_tree(self._child.pid):
            with suppress(psutil.NoSuchProcess, OSError, KeyError):  # a process that has ended has no memory
                kind = "jvm_peak_mb" if _is_java(process) else "python_peak_mb"
                peaks[kind] += memory_of(process.pid)[1] / BYTES_PER_MB
        return {**peaks, "driver_peak_mb": sum(peaks.values())}

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running(bench: Bench, command: str, settings: Settings) -> Iterator[Service]:
    """Start `sink`, `sweeper` or `console`; it isn't ready yet. After the block all of its processes are gone."""
    (port,) = free_ports(1)
    section = "CONSOLE" if command == "console" else "TELEMETRY"
    variables = {**as_environment(settings), **scratch(bench.directory), f"WAITREG_{section}__PORT": str(port)}
    with started([str(bench.product.waitreg), command], bench.directory, variables, name=command) as child:
        yield Service(child, port)


def _is_java(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()).name == "java"
    except psutil.NoSuchProcess:
        return False


def cpu_s_of_all(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU time of processes, user and system, all threads, s."""
    used_s = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            used_s += sum(process.cpu_times()[:2])
    return used_s


def scratch(directory: Path) -> dict[str, str]:
    """Return the variables that keep the temporary files of Python and Spark within a folder."""
    folder = directory / "scratch"
    folder.mkdir(exist_ok=True)
    inherited = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return {"TMPDIR": str(folder), "SPARK_SUBMIT_OPTS": f"{inherited} -Djava.io.tmpdir={folder}".strip()}
