"""The Spark session fails fast, stays within its heap, and the user's own properties win."""

from __future__ import annotations

from pathlib import Path

import pytest

from wait_registry.settings.runtime import SparkSettings
from wait_registry.spark.session import failing_fast, result_limit, session_conf


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
