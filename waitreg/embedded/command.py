"""`waitreg stack up`: keeps one embedded stack running and says where it is."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import psycopg
from pydantic import SecretStr

from wait_registry.kafka.topics import create_topics
from wait_registry.postgres.schema import install_schema
from wait_registry.settings.root import Settings
from waitreg.embedded.stack import EmbeddedStack

LOOK_S = 0.5
# One broker can keep one replica; the services are told too, or their start checks would ask for three.
ONE_BROKER = {"replication_factor": 1, "min_insync_replicas": 1}


def run_stack(settings: Settings, data_dir: Path | None = None) -> int:
    """Start a stack, make its topics and its schema, print its addresses, and keep it until Ctrl-C or SIGTERM.

    Args:
        settings: names of topics and schema; the addresses in it are replaced by the stack's own.
        data_dir: folder for data that outlives the stack; a temporary one when None.

    Returns:
        0 when it was asked to stop, 1 when one of the servers ended by itself.

    Raises:
        ConfigurationError: it could not be started; the message says why.
    """
    with stop_requests() as stop, EmbeddedStack(data_dir) as stack:
        here = settings_at(stack, settings)
        create_topics(here)
        with psycopg.connect(stack.postgres_url, autocommit=True) as connection:
            install_schema(connection, here.postgres.schema_name)
        print(addresses(stack, kept=data_dir is not None), flush=True)
        while not stop.wait(LOOK_S):
            for server in (stack.broker, stack.postgres):
                if not server.running:
                    print(f"the embedded {server.name} has ended; its log is {server.log}", file=sys.stderr)
                    return 1
    return 0


def settings_at(stack: EmbeddedStack, settings: Settings) -> Settings:
    """Return the settings with the stack's addresses and what a single broker can keep."""
    return settings.model_copy(
        update={
            "kafka": settings.kafka.model_copy(update={"bootstrap_servers": stack.bootstrap_servers}),
            "postgres": settings.postgres.model_copy(update={"url": SecretStr(stack.postgres_url)}),
            "wait": settings.wait.model_copy(update=ONE_BROKER),
        }
    )


def addresses(stack: EmbeddedStack, *, kept: bool) -> str:
    """Return the stack's addresses as lines for a shell, and whether its data outlives it."""
    ending = "data and logs, which stay" if kept else "data and logs, deleted at the end (--data-dir keeps them)"
    variables = {**stack.environment, **{f"WAITREG_WAIT__{name.upper()}": str(n) for name, n in ONE_BROKER.items()}}
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
