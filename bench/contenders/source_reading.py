"""Reads a wait topic with Spark as the sink does, options, columns and headers alike, and does nothing with it.

Each batch is given to Spark's `noop` writer (`--into arrow`: to Python, as the sink does before it compacts). Settings
come from the environment. It prints its pace between two records as a line of JSON, and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.contenders.our_service import cpu_s_of_all
from bench.contenders.progress_steps import Step, pace
from sink.batch import EXPRESSIONS
from sink.kafka_query import poll_options, source_options
from sink.position import TopicPartition
from sink.stream_offsets import assignment, batch_end_offsets, starting_offsets
from wait_registry.local.guard import process_tree
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings
from wait_registry.spark.session import spark_session, stop_session


class Reading:
    """One query over a whole topic."""

    def __init__(self, spark: SparkSession, settings: Settings, records: int, *, into_arrow: bool) -> None:
        """Describe it.

        Args:
            spark: the session.
            settings: whose wait topic is read, from its beginning.
            records: how many stand in it.
            into_arrow: hand each batch to Python.
        """
        self._spark = spark
        self._settings = settings
        self._records = records
        self._into_arrow = into_arrow
        self._checkpoint = Path(settings.sink.checkpoint_dir).absolute() / "bare-source"
        self._ended = threading.Event()
        # Looked up once: the look costs more than a per cent of a batch.
        self._processes = process_tree(os.getpid())
        self.steps = [Step(time.monotonic(), 0, cpu_s_of_all(self._processes))]

    def run(self, limit_s: float) -> None:
        """Read to the end; raises TimeoutError when that takes too long, or whatever breaks the query."""
        query = (
            self._frame()
            .writeStream.foreachBatch(self._take)
            .option("checkpointLocation", self._checkpoint.as_uri())
            .trigger(processingTime="0 seconds")
            .start()
        )
        deadline = time.monotonic() + limit_s
        try:
            while not self._ended.wait(0.1):
                query.awaitTermination(0.1)  # raises what broke it
                if time.monotonic() > deadline:
                    raise TimeoutError(f"read {self.steps[-1].records} of {self._records} records in {limit_s:g} s")
        finally:
            query.stop()

    def _frame(self) -> DataFrame:
        wait, most = self._settings.wait, self._settings.sink.max_batch_records
        places = {TopicPartition(wait.topic, partition): 0 for partition in range(wait.partitions)}
        options = {
            **source_options(self._settings.kafka),
            "assign": assignment(places),
            "startingOffsets": starting_offsets(places),
            "maxOffsetsPerTrigger": str(most),
            **poll_options(most, len(places)),
        }
        return self._spark.readStream.format("kafka").options(**options).load().selectExpr(*EXPRESSIONS)

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        if self._into_arrow:
            frame.toArrow()
        else:
            frame.write.format("noop").mode("overwrite").save()
        done = sum(batch_end_offsets(self._checkpoint, batch_id).values())
        self.steps.append(Step(time.monotonic(), done, cpu_s_of_all(self._processes)))
        if done >= self._records:
            self._ended.set()


def main() -> None:
    """Run as the module's docstring says."""
    options = _options()
    settings = load_settings({}, None)
    spark = spark_session(settings, "bench-bare-source")
    try:
        reading = Reading(spark, settings, options.records, into_arrow=options.into == "arrow")
        reading.run(options.limit_s)
    finally:
        stop_session(spark)
    found = pace(reading.steps, options.first, options.last)
    print(json.dumps({"records_per_s": found.records_per_s, "cpu_us_per_record": found.cpu_us_per_record}))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, required=True, help="how many stand in the topic")
    parser.add_argument("--first", type=int, required=True, help="the pace counts from the first batch that ends here")
    parser.add_argument("--last", type=int, required=True, help="to the last batch that ends here")
    parser.add_argument("--limit-s", type=float, required=True, help="when it gives up, s")
    parser.add_argument("--into", choices=("noop", "arrow"), default="noop", help="what each batch is given to")
    return parser.parse_args()


if __name__ == "__main__":
    main()
