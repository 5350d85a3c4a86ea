"""`waitreg stack up`: keeps one embedded stack running and prints its addresses."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pydantic import SecretStr

from wait_registry.kafka.topics import create_topics
from wait_registry.postgres.connection import connect as connect_postgres
from wait_registry.postgres.schema import migrate_schema
from wait_registry.service.process import stop_requests
from wait_registry.settings.root import Settings
from waitreg.local.background import console_background
from waitreg.local.connect_worker import ConnectWorker, plugin_jar
from waitreg.local.ports import free_ports
from waitreg.local.server import EmbeddedServer
from waitreg.local.stack import EmbeddedStack

CHECKOUT = Path(__file__).parents[2]
LOOK_S = 0.5
# One broker can keep one replica. The services get the same settings, or their start checks would ask for three.
ONE_BROKER = {"replication_factor": 1, "min_insync_replicas": 1}
# What Debezium's source reads the outbox by.
LOGICAL_DECODING = {"wal_level": "logical"}


def run_stack(
    settings: Settings, data_dir: Path | None = None, *, connect: bool = False, console: bool = False
) -> None:
    """Start a stack, make its topics and its schema, print its addresses, and keep it until Ctrl-C or SIGTERM.

    Args:
        settings: names of topics and schema; the addresses in it are replaced by the stack's own.
        data_dir: folder for data that outlives the stack; a temporary one when None.
        connect: whether a Kafka Connect worker with this project's plugin belongs to it.
        console: whether the console belongs to it.

    Raises:
        ConfigurationError: it could not be started; the message says why.
        ServerError: one of the servers didn't start or ended by itself, so the whole stack ends.
    """
    plugin = plugin_jar(CHECKOUT) if connect else None
    with stop_requests() as stop, ExitStack() as running:
        running.callback(_report, "Stopped.")
        _report("Starting Kafka and Postgres (10 s; a minute on a busy machine)...")
        stack = running.enter_context(EmbeddedStack(data_dir, postgres_settings=LOGICAL_DECODING if connect else None))
        _report("Creating topics and tables...")
        settings = _settings_of(stack, settings)
        create_topics(settings)
        with connect_postgres(settings.postgres, autocommit=True, application_name="waitreg stack") as connection:
            migrate_schema(connection)
        servers: list[EmbeddedServer] = [stack.broker, stack.postgres]
        variables = {**stack.environment, **{f"WAITREG_WAIT__{name.upper()}": str(n) for name, n in ONE_BROKER.items()}}
        if plugin is not None:
            _report("Starting the Kafka Connect worker...")
            worker = running.enter_context(
                ConnectWorker(
                    stack.data_dir / "connect",
                    stack.worker_port,
                    stack.bootstrap_servers,
                    plugins=[plugin],
                    temporary=stack.temporary,
                )
            )
            servers.append(worker)
            variables["WAITREG_CONNECT__URL"] = worker.url
        if console:
            _report("Starting the console...")
            port = settings.console.port or free_ports(1)[0]
            pages = console_background(settings, stack.data_dir / "console", port, temporary=stack.temporary)
            servers.append(running.enter_context(pages))
            _report(f"The console: {pages.address}")
        print(_addresses(stack, variables), flush=True)
        while not stop.wait(LOOK_S):
            for server in servers:
                server.require_running()
        _report("Stopping...")


def _report(text: str) -> None:
    # On standard error: standard output is for the shell that evaluates the export lines.
    print(text, file=sys.stderr, flush=True)


def _settings_of(stack: EmbeddedStack, settings: Settings) -> Settings:
    """Return the settings with the addresses of the stack, and what one broker can keep."""
    return settings.model_copy(
        update={
            "kafka": settings.kafka.model_copy(update={"bootstrap_servers": stack.bootstrap_servers}),
            "postgres": settings.postgres.model_copy(update={"url": SecretStr(stack.postgres_url)}),
            "wait": settings.wait.model_copy(update=ONE_BROKER),
        }
    )


def _addresses(stack: EmbeddedStack, variables: Mapping[str, str]) -> str:
    """Return the environment as lines for a shell, and whether the data is kept."""
    ending = "deleted at the end (--data-dir keeps them)" if stack.temporary else "which stay"
    exports = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join([*exports, f"# data and logs, {ending}: {stack.data_dir}", "# Ctrl-C ends it"])
