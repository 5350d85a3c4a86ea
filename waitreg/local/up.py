"""`waitreg stack up`: keeps one embedded stack running and prints its addresses."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import click
from pydantic import SecretStr

from wait_registry.service.process import stop_requests
from wait_registry.settings.tree import Settings
from waitreg.command import Command, Invocation
from waitreg.local.background import Background, console_background
from waitreg.local.ports import free_ports
from waitreg.local.server import EmbeddedServer
from waitreg.local.stack import EmbeddedStack, install

LOOK_S = 0.5
# One broker can keep one replica. The services get the same settings, or their start checks would ask for three.
ONE_BROKER = {"replication_factor": 1, "min_insync_replicas": 1}


@click.command(
    "up",
    cls=Command,
    examples=("waitreg stack up --console", "waitreg stack up --data-dir .waitreg/stack"),
)
@click.option("--data-dir", metavar="DIR", type=click.Path(path_type=Path), help="Keep the data there.")
@click.option("--console", is_flag=True, help="Serve the console too, at console.port.")
@click.pass_obj
def command(invocation: Invocation, data_dir: Path | None, console: bool) -> int:
    """Start the stack, print its addresses, and keep it until Ctrl-C.

    Starts a Kafka broker and Postgres as child processes on free loopback ports, creates topics and schema, and
    prints the addresses as WAITREG_* lines for your shell. Ctrl-C, or any other end of this process, stops both and
    deletes their data and logs. With --data-dir the data remains, and the next start continues with it. Kafka's own
    kafka-... tools are not included. Needs Java 17 or newer.
    """
    settings = invocation.settings()
    with stop_requests() as stop, ExitStack() as running:
        running.callback(_report, "Stopped.")
        _report("Starting Kafka and Postgres (10 s; a minute on a busy machine)...")
        stack = running.enter_context(EmbeddedStack(data_dir))
        settings = _settings_of(stack, settings)
        _report("Creating topics and tables...")
        install(settings)
        servers: list[EmbeddedServer] = [stack.broker, stack.postgres]
        variables = {**stack.environment, **{f"WAITREG_WAIT__{name.upper()}": str(n) for name, n in ONE_BROKER.items()}}
        if console:
            pages = running.enter_context(_console(stack, settings))
            servers.append(pages)
            _report(f"The console: {pages.address}")
        print(_addresses(stack, variables), flush=True)
        while not stop.wait(LOOK_S):
            for server in servers:
                server.require_running()
        _report("Stopping...")
    return 0


def _console(stack: EmbeddedStack, settings: Settings) -> Background:
    _report("Starting the console...")
    port = settings.console.port or free_ports(1)[0]
    return console_background(settings, stack.data_dir / "console", port, temporary=stack.temporary)


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
