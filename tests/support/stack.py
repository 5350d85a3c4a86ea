"""The stacks that tests use: the embedded one, containers, or one that runs already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tests.support.container_stack import ContainerStack
from waitreg.local.stack import EmbeddedStack

KAFKA_VARIABLE = "WAITREG_TEST_KAFKA"
POSTGRES_VARIABLE = "WAITREG_TEST_POSTGRES"


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


# A test may break the servers of its own stack. It uses the run's stack, and leaves that as it is.
OwnStack: TypeAlias = EmbeddedStack | ContainerStack
Stack: TypeAlias = OwnStack | GivenStack
