"""Spark's Kafka source alone, beside the sink: what there is to be had in a session like the sink's.

`measure` starts `python -m bench.contenders.bare_source RECORDS FIRST LAST LIMIT_S`, which reads the wait topic of the
settings in its environment from its beginning, with the sink's own options and columns, and hands each micro-batch to
Spark's `noop` writer, one after the other without a pause. It prints its pace between two records, and ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from bench.contenders.product import cpu_s_of_all, scratch, settings_of
from bench.contenders.sink_pace import Step, pace, stretch
from bench.contenders.wait_log import WaitLog
from bench.harness.process import started
from bench.harness.row import Bench, Figures
from wait_registry.demo.environment import as_environment
from wait_registry.kafka.clients import java_client_config
from wait_registry.local.guard import process_tree
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings
from wait_registry.spark.session import spark_session, stop_session

DEADLINE_S: Final = 240.0
# Within which it gives up itself, and says how far it came.
LIMIT_S: Final = 220.0
# As the sink selects them.
COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "unix_millis(timestamp) as time_ms", "headers")
FETCH_MAX_WAIT_MS: Final = 10


def measure(log: WaitLog, bench: Bench) -> Figures:
    """Have a process read a whole log, and return its pace in the stretch that counts for the sink too."""
    command = [sys.executable, "-m", "bench.contenders.bare_source", str(log.records), *map(str, log.measured)]
    variables = as_environment(settings_of(bench, log.topic, log.partitions))
    variables |= scratch(bench.directory)
    with started([*command, str(LIMIT_S)], bench.directory, variables, name="bare-source") as child:
        return child.result(DEADLINE_S)


def read(spark: SparkSession, settings: Settings, records: int, limit_s: float) -> list[Step]:
    """Read the topic to the end, and return a step per batch."""
    topic, most = settings.wait.topic, settings.sink.max_batch_records
    client = java_client_config(
        settings.kafka, **{"isolation.level": "read_committed", "fetch.max.wait.ms": FETCH_MAX_WAIT_MS}
    )
    partitions = range(settings.wait.partitions)
    options = {
        **{f"kafka.{name}": value for name, value in client.items()},
        "includeHeaders": "true",
        "assign": json.dumps({topic: list(partitions)}),
        "startingOffsets": json.dumps({topic: {str(partition): 0 for partition in partitions}}),
        "maxOffsetsPerTrigger": str(most),
    }
    frame = spark.readStream.format("kafka").options(**options).load().selectExpr(*COLUMNS)
    checkpoint = Path("checkpoint").absolute()
    processes = process_tree(os.getpid())
    steps = [Step(time.monotonic(), 0, cpu_s_of_all(processes))]

    def take(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        # The file of a batch's ends: its last line has them by topic and partition.
        ends = json.loads((checkpoint / "offsets" / str(number)).read_text("utf-8").splitlines()[-1])
        steps.append(Step(time.monotonic(), sum(ends[topic].values()), cpu_s_of_all(processes)))

    made = frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint.as_uri())
    query, deadline = made.trigger(processingTime="0 seconds").start(), time.monotonic() + limit_s
    try:
        while steps[-1].records < records:
            query.awaitTermination(0.1)  # raises what broke it
            if time.monotonic() > deadline:
                raise TimeoutError(f"read {steps[-1].records} of {records} records in {limit_s:g} s")
    finally:
        query.stop()
    return steps


if __name__ == "__main__":
    given = load_settings({}, None)
    session = spark_session(given, "bench-bare-source")
    try:
        seen = read(session, given, int(sys.argv[1]), float(sys.argv[4]))
    finally:
        stop_session(session)
    print(json.dumps(pace(*stretch(seen, int(sys.argv[2]), int(sys.argv[3])))))
