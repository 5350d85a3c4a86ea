"""A redrive, run as an operator runs it: all dead letters of a group go to its redelivery topic."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import Final

from bench.contenders.load import create
from bench.contenders.product import connection_to, count, cpu_s_of_all, fresh_schema, running, waitreg
from bench.contenders.wait_log import GROUP, INPUT_TOPIC, WaitLog, WaitLogWriter, prepare_topics
from bench.harness.process import started
from bench.harness.row import Bench, Figures
from wait_registry.settings.processor import ProcessorSettings
from waitreg.local.environment import as_environment
from waitreg.local.guard import process_tree

SHOWN: Final = "select count(*) from dead_letter"
RATE: Final = 10_000
REDRIVE: Final = (
    *("dlq", "redrive", f"group={GROUP}", "--send", f"--rate={RATE}"),
    *("--reason=the service is back", "--without-members"),
)
LONGEST_S: Final = 300.0


def measure_redrive(log: WaitLog, bench: Bench) -> Figures:
    """Redrive dead letters of records of a log that the tables show; the figures include the command's start."""
    log = replace(log, topic=f"{log.topic}.{uuid.uuid4().hex[:8]}")
    create(bench.kafka, INPUT_TOPIC)
    prepare_topics(bench, log)
    with fresh_schema(bench, log.topic) as tables, connection_to(tables) as connection:
        processor = ProcessorSettings(group=GROUP, topics=(INPUT_TOPIC,))
        operations = tables.operations.model_copy(update={"topic": f"{log.topic}.operations"})
        settings = tables.model_copy(update={"processor": processor, "operations": operations})
        variables = {**as_environment(settings), "WAITREG_REDRIVE__MAX_RATE": str(RATE)}
        waitreg(bench, variables, "topics", "create")
        WaitLogWriter(bench.kafka).write_dead_letters(log)
        with running(bench, "sink", settings) as sink:
            sink.wait_for(lambda: count(connection, SHOWN) >= log.waits, "to show the dead letters", LONGEST_S)
            sink.await_ready()
            sink.stop()
        used_s = [0.0]
        began = time.monotonic()
        with started([str(bench.product.waitreg), *REDRIVE], bench.directory, variables, name="redrive") as child:
            child.run(LONGEST_S, lambda: used_s.append(cpu_s_of_all(process_tree(child.pid))))
        seconds = time.monotonic() - began
        return {"cpu_us_per_record": 1e6 * max(used_s) / log.waits, "records_per_s": log.waits / seconds}
