"""The history of settled records: each tombstone is one row, however runs end and whatever compaction removes later."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from sink.history.directory import METADATA, HistoryDirectory
from sink.history.run import HistoryResult, run_history
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, transaction, wait_record
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError, FencedError
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.settings.tree import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import SettingsFactory

# Spark takes seconds per read on a busy machine, and each test reads a few times.
pytestmark = pytest.mark.timeout(700)


@pytest.fixture
def settings(settings_for: SettingsFactory, topics: Topics) -> Settings:
    settings = settings_for({"wait.partitions": 2, "sink.max_batch_records": 10})
    topics.create_own(settings, 1)
    return settings


@pytest.fixture
def log(settings: Settings, topics: Topics) -> WaitTopic:
    return WaitTopic(topics, settings.wait.topic)


def rows(path: Path) -> list[dict[str, Any]]:
    """Return all rows, read as another program reads them."""
    folders = ds.partitioning(pa.schema([("day", pa.string()), ("group", pa.string())]), flavor="hive")
    return ds.dataset(path, partitioning=folders).to_table().to_pylist()  # type: ignore[no-any-return]


def outcomes(path: Path) -> dict[str, str]:
    """Return the outcome by wait ID; no ID may be there twice."""
    found = rows(path)
    assert set(Counter(row["wait_id"] for row in found).values()) <= {1}
    return {row["wait_id"]: row["outcome"] for row in found}


def of_group(group: str, wait_id: str) -> Outgoing:
    encoder = WaitRecordEncoder(group, "host-1", "orders.dlq", ExpiryRule("dlq", 3))
    original = Original("orders", 0, 1, 1_700_000_000_000, "create", b"k", b"", ())
    return Outgoing(b"", wait_id.encode(), tuple(encoder.headers(original, wait_id, 1_795_227_900_000)), 0)


def test_each_settled_record_is_one_row_over_several_runs(
    settings: Settings, log: WaitTopic, topics: Topics, spark: SparkSession, tmp_path: Path
) -> None:
    ids = [new_id() for _ in range(30)]
    log.write(*(wait_record(wait_id, number % 2) for number, wait_id in enumerate(ids)))
    log.write(*(tombstone(wait_id, number % 2) for number, wait_id in enumerate(ids[:12])))
    first = run_history(settings, tmp_path, spark, held_rows=5)
    assert (first.rows, first.without_registration, first.open) == (12, 0, 18)
    with transaction(topics, settings.wait.topic, commit=False) as producer:
        producer.produce(settings.wait.topic, key=ids[29].encode(), partition=1)
    log.write(*(tombstone(wait_id, n % 2, Outcome.EXPIRED) for n, wait_id in enumerate(ids[:20]) if n > 11))
    second = run_history(settings, tmp_path, spark)
    assert (second.rows, second.without_registration, second.open) == (8, 0, 10)
    nothing = run_history(settings, tmp_path, spark)
    assert nothing == HistoryResult(rows=0, without_registration=0, files=0, open=10)
    expected = dict.fromkeys(ids[:12], "done") | dict.fromkeys(ids[12:20], "expired")
    assert outcomes(tmp_path) == expected
    row = rows(tmp_path)[0]
    shown = [row[name] for name in ("group", "consumer_group", "key", "topic", "offset")]
    assert shown == ["billing", "billing", b"k", "orders", 41]
    assert f"{row['settled_at']:%Y-%m-%d}" == str(row["day"])
    assert row["registered_at"] <= row["settled_at"]
    assert spark.read.parquet(str(tmp_path)).where("group = 'billing' and string(key) = 'k'").count() == 20


@pytest.mark.parametrize("before", [0, 28], ids=["the first run", "a later run"])
def test_a_run_that_broke_off_doubles_no_row(
    before: int, settings: Settings, log: WaitTopic, spark: SparkSession, tmp_path: Path
) -> None:
    history, saved = tmp_path / "history", tmp_path / "saved"
    ids = [new_id() for _ in range(20)]
    records = [*(wait_record(wait_id, 0) for wait_id in ids), *(tombstone(wait_id, 0) for wait_id in ids)]
    log.write(*records[:before])
    run_history(settings, history, spark)
    shutil.copytree(history / "_state", saved)
    log.write(*records[before:])
    run_history(settings, history, spark)
    # The last part is written, and its commit is lost, as by a kill; half a file is left, too.
    shutil.rmtree(history / "_state")
    shutil.copytree(saved, history / "_state")
    part = max(history.glob("day=*/group=*/part-*.parquet"))
    part.with_name(f".{part.name}").write_bytes(part.read_bytes()[:20])
    again = run_history(settings, history, spark)
    assert again.rows == min(20, 40 - before)
    assert outcomes(history) == dict.fromkeys(ids, "done")
    assert list(history.glob("**/.part-*")) == []


@pytest.mark.parametrize("group", ["a/b=c %..", "..", "gruppe-ä", "x" * 249, "ä%" * 120])
def test_any_name_of_a_group_is_kept(
    group: str, settings: Settings, log: WaitTopic, spark: SparkSession, tmp_path: Path
) -> None:
    wait_id = new_id()
    log.write(of_group(group, wait_id), tombstone(wait_id, 0))
    run_history(settings, tmp_path, spark)
    (row,) = rows(tmp_path)
    assert row["consumer_group"] == group
    assert row["group"] == group or len(group) > 200
    (read,) = spark.read.parquet(str(tmp_path)).select("consumer_group").collect()
    assert read.consumer_group == group


def test_keys_can_be_omitted(settings: Settings, log: WaitTopic, spark: SparkSession, tmp_path: Path) -> None:
    wait_id = new_id()
    log.write(wait_record(wait_id, 0, key=b"secret"), tombstone(wait_id, 0))
    run_history(settings, tmp_path, spark, with_keys=False)
    assert [row["key"] for row in rows(tmp_path)] == [None]


def test_two_runs_at_once_and_another_topic_are_refused(
    settings: Settings, log: WaitTopic, topics: Topics, spark: SparkSession, tmp_path: Path
) -> None:
    log.write(wait_record(new_id(), 0))
    with HistoryDirectory(tmp_path).locked(), pytest.raises(FencedError, match="another run"):
        run_history(settings, tmp_path, spark)
    run_history(settings, tmp_path, spark)
    position = tmp_path / "_state" / "position.arrow"
    kept = position.read_bytes()
    with pa.ipc.open_file(pa.BufferReader(kept)) as reader:
        opened = reader.read_all()
    fields = opened.schema.metadata[METADATA]
    for changed, message in (
        (fields.replace(b'"topic_id": "', b'"topic_id": "other-'), "set wait.topic"),
        (fields.replace(b'"0": ', b'"0": 9'), "has lost records"),
        (fields.replace(b'"format": 1', b'"format": 2'), "of format 2"),
        (fields[:20], "can't be read"),
    ):
        other = opened.replace_schema_metadata({METADATA: changed})
        with pa.ipc.new_file(str(position), other.schema) as writer:
            writer.write_table(other)
        with pytest.raises(ConfigurationError, match=message):
            run_history(settings, tmp_path, spark)
    position.write_bytes(kept)
    assert run_history(settings, tmp_path, spark).open == 1
    position.write_bytes(kept[:100])
    with pytest.raises(ConfigurationError, match="can't be read"):
        run_history(settings, tmp_path, spark)
