"""The Spark session fails fast, stays within its heap, and the user's properties win; its end hides no error."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from py4j.protocol import Py4JNetworkError

from wait_registry.settings.runtime import SparkSettings
from wait_registry.spark.session import (
    failing_fast,
    files_of_ones_own,
    java_options,
    result_limit,
    session_conf,
    stop_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,1]"),
        ("local[2]", "local[2,1]"),
        ("local[*]", "local[*,1]"),
        ("local[2,3]", "local[2,3]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_task_is_tried_once_also_where_spark_is_one_process(master: str, expected: str) -> None:
    assert failing_fast(master) == expected


def test_a_batch_may_take_half_of_the_heap() -> None:
    assert (result_limit("512m"), result_limit("2g"), result_limit("100m")) == ("256m", "1024m", "64m")


def test_the_users_properties_come_last() -> None:
    settings = SparkSettings(conf={"spark.task.maxFailures": "4", "spark.extra": "x"})
    conf = session_conf(settings, [Path("/jars/a.jar"), Path("/jars/b.jar")])
    assert conf["spark.task.maxFailures"] == "4"
    assert conf["spark.extra"] == "x"
    assert conf["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert conf["spark.sql.session.timeZone"] == "UTC"


def test_only_a_local_session_is_bound_to_loopback() -> None:
    assert session_conf(SparkSettings(), [])["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in session_conf(SparkSettings(master="yarn"), [])


@pytest.mark.parametrize(
    "name", ["spark.kafka.sasl.jaas.config", "spark.ssl.ui.keyPassword", "spark.hadoop.fs.azure.oauth2.credential"]
)
def test_sparks_pages_hide_what_sounds_secret_and_nothing_else(name: str) -> None:
    hidden = re.compile(session_conf(SparkSettings(), [])["spark.redaction.regex"])
    assert hidden.search(name)
    assert not any(hidden.search(shown) for shown in ("spark.driver.memory", "spark.sql.shuffle.partitions"))


def test_child_processes_make_files_that_others_cannot_read(tmp_path: Path) -> None:
    with files_of_ones_own():
        subprocess.run(["touch", tmp_path / "spilled"], check=True)
    (tmp_path / "ours").touch()
    assert (tmp_path / "spilled").stat().st_mode & 0o077 == 0
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


@pytest.mark.parametrize(
    ("memory", "begins", "young"), [("512m", "-Xms192m", "-Xmn144m"), ("2g", "-Xms768m", "-Xmn576m")]
)
def test_the_heap_begins_small_and_never_above_what_it_may_be(memory: str, begins: str, young: str) -> None:
    options = java_options(memory).split()
    assert begins in options
    assert young in options


class DeadSession:
    """A session whose JVM is gone: stopping it raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = False

    def stop(self) -> None:
        self.asked = True
        raise self.error


@pytest.mark.parametrize("error", [Py4JNetworkError("gone"), ConnectionRefusedError("refused"), EOFError()])
def test_the_end_of_a_session_whose_jvm_is_gone_hides_no_error(error: Exception) -> None:
    session = DeadSession(error)
    stop_session(cast("SparkSession", session))
    assert session.asked


def test_what_is_no_sign_of_a_dead_jvm_is_raised() -> None:
    with pytest.raises(TypeError):
        stop_session(cast("SparkSession", DeadSession(TypeError("a defect"))))
