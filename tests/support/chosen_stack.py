"""Which stack the run's tests get: ``--stack=embedded|containers``, or one that the environment names."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NoReturn

import pytest

from tests.support.container_stack import KAFKA_IMAGE, POSTGRES_IMAGE, ContainerStack, engine_problem
from tests.support.stack import GivenStack, OwnStack, Stack
from waitreg.local.stack import EmbeddedStack

EMBEDDED, CONTAINERS = "embedded", "containers"

# Logical decoding is what Debezium's source reads the outbox by.
POSTGRES_SETTINGS = {"fsync": "off", "wal_level": "logical"}

# What the option was about, said at the end of the run.
_NOT_TESTED = "--stack=containers: NOT TESTED"


class ChosenStack:
    """The answer for one run.

    Args:
        kind: `embedded` or `containers`.
        given: a stack that runs already, instead of the run's own; a test's own stack is of that kind all the same.
    """

    def __init__(self, kind: str, given: GivenStack | None) -> None:
        if given is not None and kind == CONTAINERS:
            raise pytest.UsageError("--stack=containers, but the environment names a stack to use: unset one of both")
        self.kind = kind
        self._given = given

    def for_the_run(self) -> AbstractContextManager[Stack]:
        """Return the stack that all tests share; without an engine for containers the test is skipped."""
        return nullcontext(self._given) if self._given is not None else self.to_break()

    def to_break(self) -> AbstractContextManager[OwnStack]:
        """Return one to be stopped, killed and paused; without an engine for containers the test is skipped."""
        if self.kind == EMBEDDED:
            return EmbeddedStack(postgres_settings=POSTGRES_SETTINGS)
        problem = engine_problem_of_the_run()
        if problem is not None:
            pytest.skip(f"{_NOT_TESTED}, {problem}")
        return ContainerStack(POSTGRES_SETTINGS)

    def header(self) -> str:
        if self._given is not None:
            return f"stack: given, {self._given.bootstrap_servers} and {self._given.postgres_url}"
        if self.kind == EMBEDDED:
            return "stack: embedded"
        return f"stack: containers, {engine_problem_of_the_run() or f'{KAFKA_IMAGE} and {POSTGRES_IMAGE}'}"

    def not_tested(self, skipped: int) -> str:
        """Return the last line of a run in which tests had no engine."""
        problem = engine_problem_of_the_run()
        return f"{_NOT_TESTED}: all {skipped} tests that need Kafka or Postgres were skipped, {problem}"


def is_for_want_of_an_engine(reason: str) -> bool:
    """Return whether a test was skipped by this choice."""
    return _NOT_TESTED in reason


def skips_are_failures() -> bool:
    """Return whether a run must not pass without its stack: on a CI machine no developer reads what was skipped."""
    return os.environ.get("CI", "").lower() in ("1", "true")


def not_tested(missing: str) -> NoReturn:
    """Skip a test for want of something; on a CI machine the test fails."""
    (pytest.fail if skips_are_failures() else pytest.skip)(f"NOT TESTED: {missing}")


@cache
def engine_problem_of_the_run() -> str | None:
    """Return `engine_problem`, asked once a run."""
    return engine_problem()
