"""A stack that runs already, of which the tests know two addresses."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass

KAFKA_VARIABLE = "WAITREG_TEST_KAFKA"
POSTGRES_VARIABLE = "WAITREG_TEST_POSTGRES"


@dataclass(frozen=True, slots=True)
class GivenStack:
    """Shared by many test runs, one after another or at once: every test has topics and a schema of its own."""

    bootstrap_servers: str
    postgres_url: str

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> GivenStack | None:
        """Return the stack that both variables name, None without them."""
        kafka, postgres = environment.get(KAFKA_VARIABLE), environment.get(POSTGRES_VARIABLE)
        return cls(kafka, postgres) if kafka and postgres else None
