"""Stopping a session never hides why it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from py4j.protocol import Py4JNetworkError

from wait_registry.spark.session import stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DeadSession:
    """A session whose JVM is gone: stopping it raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = False

    def stop(self) -> None:
        self.asked = True
        raise self.error


@pytest.mark.parametrize("error", [Py4JNetworkError("gone"), ConnectionRefusedError("refused"), EOFError()])
def test_what_ended_the_run_is_raised_though_the_jvm_is_gone(error: Exception) -> None:
    session = DeadSession(error)

    def run() -> None:
        try:
            raise RuntimeError("what ended the run")
        finally:
            stop_session(cast("SparkSession", session))

    with pytest.raises(RuntimeError, match="what ended the run"):
        run()
    assert session.asked


def test_what_is_no_sign_of_a_dead_jvm_is_raised() -> None:
    with pytest.raises(TypeError):
        stop_session(cast("SparkSession", DeadSession(TypeError("a defect"))))
