"""A query's scratch folder goes with the query, however that ends; what a killed one left goes at the next start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from sink.kafka_query import KafkaQuery
from sink.position import TopicPartition
from sink.scratch import make_scratch
from wait_registry.settings.kafka import KafkaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DeadSpark:
    """Takes a query, and then its JVM is gone."""

    isActive = True  # noqa: N815 - Spark's name

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> DeadSpark:
        return self

    def stop(self) -> None:
        raise ConnectionRefusedError("the JVM is gone")


def a_query(spark: object, scratch: Path) -> KafkaQuery:
    return KafkaQuery(
        cast("SparkSession", spark),
        KafkaSettings(bootstrap_servers="nowhere:1"),
        {TopicPartition("wait", 0): 0},
        lambda *_: False,
        name="wait",
        max_records=1,
        trigger_s=1.0,
        scratch=scratch,
    )


def test_a_query_that_does_not_start_leaves_no_folder(tmp_path: Path) -> None:
    scratch = make_scratch(str(tmp_path), "waitreg-sink-wait-1-")
    with pytest.raises(AttributeError, match="readStream"):
        a_query(object(), scratch)
    assert list(tmp_path.iterdir()) == []


def test_a_query_whose_jvm_is_gone_leaves_no_folder_and_hides_no_error(tmp_path: Path) -> None:
    query = a_query(DeadSpark(), make_scratch(str(tmp_path), "waitreg-sink-wait-1-"))
    assert len(list(tmp_path.iterdir())) == 1
    query.stop()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_other_sinks_folders_stay(tmp_path: Path) -> None:
    left = make_scratch(str(tmp_path), "waitreg-sink-wait-1-")
    (left / "offsets").mkdir()
    others = {make_scratch(str(tmp_path), prefix) for prefix in ("waitreg-sink-wait-2-", "waitreg-sink-dead_letter-1-")}
    made = make_scratch(str(tmp_path), "waitreg-sink-wait-1-")
    assert set(tmp_path.iterdir()) == others | {made}


def test_the_scratch_directory_is_made(tmp_path: Path) -> None:
    assert make_scratch(str(tmp_path / "a" / "b"), "p-").parent == tmp_path / "a" / "b"
