"""What a round is played on: a broker and a Postgres with nothing in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from bench.harness.machine import server_versions
from wait_registry.local.child import log_tail
from wait_registry.local.server import EmbeddedServer
from wait_registry.local.stack import EmbeddedStack


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers that run.

    Attributes:
        kafka: bootstrap servers.
        postgres_url: of Postgres.
        versions: of both, as far as `versions()` doesn't know them.
        broken: says why one of them no longer serves; empty while both do.
    """

    kafka: str
    postgres_url: str
    versions: Mapping[str, str]
    broken: Callable[[], str] = lambda: ""


@contextmanager
def embedded_servers() -> Iterator[Servers]:
    """Start a Kafka broker and a Postgres with nothing in them, and end them with the block."""
    with EmbeddedStack() as stack:

        def broken() -> str:
            ended = [server for server in (stack.broker, stack.postgres) if _has_ended(server)]
            return _end_of(ended[0]) if ended else ""

        yield Servers(stack.bootstrap_servers, stack.postgres_url, server_versions(stack.postgres_url), broken)


def _has_ended(server: EmbeddedServer) -> bool:
    """Return whether it no longer runs; asks the system, since its guard looks ten times a second only."""
    try:
        return not server.running or bool(psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _end_of(server: EmbeddedServer) -> str:
    return f"the embedded {server.name} has ended; its log:\n{log_tail(server.log)}"
