"""`waitreg stack up`: keeps one embedded stack running and prints its addresses."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import psycopg
from pydantic import SecretStr

from wait_registry.kafka.topics import create_topics
from wait_registry.local.child import log_tail
from wait_registry.local.connect_worker import ConnectWorker, plugin_jar
from wait_registry.local.server import EmbeddedServer
from wait_registry.local.stack import EmbeddedStack
from wait_registry.postgres.schema import install_schema
from wait_registry.settings.root import Settings

CHECKOUT = Path(__file__).parents[2]
LOOK_S = 0.5
# One broker can keep one replica. The services get the same settings, or their start checks would ask for three.
ONE_BROKER = {"replication_factor": 1, "min_insync_replicas": 1}
# What Debezium's source reads the outbox by.
LOGICAL_DECODING = {"wal_level": "logical"}


def run_stack(settings: Settings, data_dir: Path | None = None, *, connect: bool = False) -> int:
    """Start a stack, make its topics and its schema, print its addresses, and keep it until Ctrl-C or SIGTERM.

    Args:
        settings: names of topics and schema; the addresses in it are replaced by the stack's own.
        data_dir: folder for data that outlives the stack; a temporary one when None.
        connect: whether a Kafka Connect worker with this project's plugin belongs to it.

    Returns:
        0 when it was asked to stop, 1 when one of the servers ended by itself.

    Raises:
        ConfigurationError: it could not be started; the message says why.
    """
    plugin = plugin_jar(CHECKOUT) if connect else None
    with stop_requests() as stop, ExitStack() as running:
        running.callback(_say, "Stopped.")
        _say("Starting Kafka and Postgres (10 s; a minute on a busy machine)...")
        stack = running.enter_context(EmbeddedStack(data_dir, postgres_settings=LOGICAL_DECODING if connect else None))
        here = settings_at(stack, settings)
        _say("Creating topics and tables...")
        create_topics(here)
        with psycopg.connect(stack.postgres_url, autocommit=True) as connection:
            install_schema(connection, here.postgres.schema_name)
        servers: list[EmbeddedServer] = [stack.broker, stack.postgres]
        variables = stack_variables(stack)
        if plugin is not None:
            _say("Starting the Kafka Connect worker...")
            worker = running.enter_context(connect_worker_of(stack, plugin))
            servers.append(worker)
            variables["WAITREG_CONNECT__URL"] = worker.url
        print(addresses(stack, variables, kept=data_dir is not None), flush=True)
        status = watch(servers, stop, stack)
        _say("Stopping...")
        return status


def _say(text: str) -> None:
    # On standard error: standard output is for the shell that evaluates the export lines.
    print(text, file=sys.stderr, flush=True)


def watch(servers: Sequence[EmbeddedServer], stop: threading.Event, stack: EmbeddedStack) -> int:
    """Wait for a request to stop (returns 0), or for a server that ends by itself (prints why, returns 1)."""
    while not stop.wait(LOOK_S):
        for server in servers:
            if not server.running:
                _say(end_of_server(server, stack))
                return 1
    return 0


def end_of_server(server: EmbeddedServer, stack: EmbeddedStack) -> str:
    """Return the last lines of a server that ended by itself, and what happens to the data."""
    data = (
        f"Data and logs in {stack.data_dir} are deleted with it; --data-dir DIR keeps them"
        if stack.temporary
        else f"Data and logs stay in {stack.data_dir}: the next start with this --data-dir uses them"
    )
    return (
        f"the embedded {server.name} has ended by itself (status {server.exit_status}); the end of {server.log}:\n"
        f"{log_tail(server.log)}\n"
        f"The whole stack ends now. {data}."
    )


@contextmanager
def connect_worker_of(stack: EmbeddedStack, plugin: Path) -> Iterator[ConnectWorker]:
    """Run a Kafka Connect worker against a stack, in the stack's folder."""
    worker = ConnectWorker(
        stack.data_dir / "connect",
        stack.worker_port(),
        stack.bootstrap_servers,
        plugins=[plugin],
        temporary=stack.temporary,
    )
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def settings_at(stack: EmbeddedStack, settings: Settings) -> Settings:
    """Return the settings with the stack's addresses and what a single broker can keep."""
    return settings.model_copy(
        update={
            "kafka": settings.kafka.model_copy(update={"bootstrap_servers": stack.bootstrap_servers}),
            "postgres": settings.postgres.model_copy(update={"url": SecretStr(stack.postgres_url)}),
            "wait": settings.wait.model_copy(update=ONE_BROKER),
        }
    )


def stack_variables(stack: EmbeddedStack) -> dict[str, str]:
    """Return the environment that points a service to the stack."""
    return {**stack.environment, **{f"WAITREG_WAIT__{name.upper()}": str(n) for name, n in ONE_BROKER.items()}}


def addresses(stack: EmbeddedStack, variables: Mapping[str, str], *, kept: bool) -> str:
    """Return the environment as lines for a shell, and whether the stack's data outlives it."""
    ending = "data and logs, which stay" if kept else "data and logs, deleted at the end (--data-dir keeps them)"
    exports = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join([*exports, f"# {ending}: {stack.data_dir}", "# Ctrl-C ends it"])


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Turn SIGTERM and Ctrl-C into an event, heeded as soon as the stack stands (a few seconds at most)."""
    stop = threading.Event()

    def request(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
