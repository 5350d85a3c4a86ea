"""What tests may ask of a stack: the embedded one, containers, or one that runs already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

KAFKA_VARIABLE = "WAITREG_TEST_KAFKA"
POSTGRES_VARIABLE = "WAITREG_TEST_POSTGRES"


class Stack(Protocol):
    """A broker and a Postgres that are shared: a test uses them and leaves them as they are."""

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address."""

    @property
    def postgres_url(self) -> str:
        """The address of Postgres."""


class StackServer(Protocol):
    """One server that a test may break; every start finds the same data on the same port."""

    @property
    def running(self) -> bool:
        """Whether it is there (it may be paused)."""

    def start(self) -> None:
        """Start it and wait until it serves; nothing happens when it runs."""

    def stop(self) -> None:
        """Stop it in order."""

    def kill(self) -> None:
        """Crash it."""

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""

    def resume(self) -> None:
        """Let it continue after `pause`; nothing happens when it isn't paused."""


class OwnStack(Stack, Protocol):
    @property
    def broker(self) -> StackServer:
        """The broker."""

    @property
    def postgres(self) -> StackServer:
        """Postgres."""


@dataclass(frozen=True, slots=True)
class GivenStack:
    """A stack that runs already, shared by many test runs: every test has topics and a schema of its own."""

    bootstrap_servers: str
    postgres_url: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> GivenStack | None:
        """Return the stack that both variables name, None without them."""
        kafka, postgres = environment.get(KAFKA_VARIABLE), environment.get(POSTGRES_VARIABLE)
        return cls(kafka, postgres) if kafka and postgres else None
