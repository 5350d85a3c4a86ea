"""Spark's Kafka source alone, alongside the sink: what there is to be had in a session like the sink's.

`measure` starts `python -m bench.contenders.bare_source FIRST LAST`, which reads the wait topic of the settings in its
environment from its beginning, with the sink's own ranges, options and columns, and hands each batch to Spark's `noop`
writer, one after the other without a pause. It prints its pace between two records, and ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Final

from pyspark.sql import SparkSession

from bench.contenders.product import cpu_s_of_all, scratch, settings_of
from bench.contenders.sink_pace import Step, pace, stretch
from bench.contenders.wait_log import WaitLog
from bench.harness.process import started
from bench.harness.row import Bench, Figures
from sink.position import TopicPartition
from sink.read.kafka_reader import source_options
from sink.read.log_ends import stable_ends
from sink.read.range_plan import plan, source_range
from sink.read.record_columns import EXPRESSIONS
from wait_registry.kafka.clients import admin
from wait_registry.settings.loading import load_settings
from wait_registry.settings.tree import Settings
from wait_registry.spark.session import spark_session, stop_session
from waitreg.local.environment import as_environment
from waitreg.local.guard import process_tree

DEADLINE_S: Final = 240.0


def measure(log: WaitLog, bench: Bench) -> Figures:
    """Have a process read a whole log, and return its pace in the stretch that counts for the sink too."""
    command = [sys.executable, "-m", "bench.contenders.bare_source", *map(str, log.measured)]
    variables = as_environment(settings_of(bench, log.topic, log.partitions)) | scratch(bench.directory)
    with started(command, bench.directory, variables, name="bare-source") as child:
        return child.result(DEADLINE_S)


def read(spark: SparkSession, settings: Settings) -> list[Step]:
    """Read the topic to its end, and return a step per batch."""
    positions = {TopicPartition(settings.wait.topic, number): 0 for number in range(settings.wait.partitions)}
    ends, processes = stable_ends(admin(settings.kafka), positions), process_tree(os.getpid())
    options = {**source_options(settings.kafka), "kafka.group.id": "bench-bare-source"}
    steps = [Step(time.monotonic(), 0, cpu_s_of_all(processes))]
    while ranges := plan(positions, ends, settings.sink.max_batch_records):
        frame = spark.read.format("kafka").options(**options, **source_range(ranges)).load().selectExpr(*EXPRESSIONS)
        frame.write.format("noop").mode("overwrite").save()
        positions |= {name: each.end for name, each in ranges.items()}
        steps.append(Step(time.monotonic(), sum(positions.values()), cpu_s_of_all(processes)))
    return steps


if __name__ == "__main__":
    given = load_settings({}, None)
    session = spark_session(given, "bench-bare-source")
    try:
        seen = read(session, given)
    finally:
        stop_session(session)
    print(json.dumps(pace(*stretch(seen, int(sys.argv[1]), int(sys.argv[2])))))
