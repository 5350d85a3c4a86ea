"""Row 7: what the pattern costs compared with plain consume-and-commit, and what compression brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from bench.contenders import flows
from bench.contenders.flows import Flow, Window, filled, flow_arguments, measure_flow, warm_up
from bench.contenders.load import PARTITIONS, delete, held
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row
from wait_registry.kafka.clients import admin
from wait_registry.settings.kafka import KafkaSettings

COST: Final = "at full speed"
COMPRESSIONS: Final = {"none": "bare loop, uncompressed", "lz4": flows.BARE_LOOP.name, "zstd": "bare loop, zstd"}
NOOP_TOPIC: Final = "bench.r7.noop"
# They hold hardly more than is measured: the registry works them off to their end.
MODES: Final = {flows.REGISTRY: "bench.r7.eager", flows.DEFERRED: "bench.r7.deferred", flows.OFF: "bench.r7.deferred"}
IN_FLIGHT: Final = 50
# The warm-up registers the first 20,000 records of each partition: they count, and long runs have few of them.
SECONDS: Final = 12.0
BEYOND: Final = 20_000
QUICK_WINDOW: Final = Window(500, 1_900, 120.0)
QUICK_RECORDS: Final = 2_000
CPU: Final = "cpu_us_per_record"
BROKER_CPU: Final = "broker_cpu_us_per_record"
INPUT_BYTES: Final = "input_bytes_per_record"
ALL_BYTES: Final = "bytes_per_record"
WAIT_BYTES: Final = "wait_bytes_per_record"
# So that the rest of the topic is worked off, tombstones and all, before the processor is killed.
SETTLE_S: Final = 1
DIRECTORIES: Final = "log.dirs="


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker seen from outside: its process ID, and where its partitions' folders are."""

    pid: int
    data: Path

    @staticmethod
    def at(kafka: str) -> Broker:
        """Find the broker that listens at an address of this machine."""
        port = int(kafka.partition(",")[0].rpartition(":")[2])
        listening = (each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN)
        pid = next((each.pid for each in listening if each.laddr.port == port), None)
        if pid is None:
            raise LookupError(f"no process that can be seen listens on port {port}: is the broker another machine's?")
        lines = Path(psutil.Process(pid).cmdline()[-1]).read_text("utf-8").splitlines()
        return Broker(pid, Path(next(line for line in lines if line.startswith(DIRECTORIES)).removeprefix(DIRECTORIES)))

    def topic_bytes(self, topic: str) -> int:
        """Return what a topic's segments hold, all partitions, without their indexes (preallocated, and small)."""
        folders = [folder for folder in self.data.iterdir() if folder.name.rpartition("-")[0] == topic]
        return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))


def _cases(bench: Bench) -> Sequence[Case]:
    def noop(name: str, flow: Flow, **options: Any) -> Contender:
        return Contender(name, partial(_measure, flow, options))

    plain = noop(flows.PLAIN.name, flows.PLAIN)
    compressed = [noop(name, flows.BARE_LOOP, compression=kind) for kind, name in COMPRESSIONS.items()]
    ours = [noop(flow.name, flow, linger_ms=5, idle_s=SETTLE_S) for flow in MODES]
    contenders = [plain, compressed[2], *ours] if bench.quick else [plain, *compressed, *ours]
    return [Case(COST, contenders, bench.size(1, 2), _fill_noop)]


def _window(bench: Bench, flow: Flow) -> Window:
    return QUICK_WINDOW if bench.quick else flow.noop_window(SECONDS)


def _fill_noop(bench: Bench) -> None:
    for flow, topic in ((flows.BARE_LOOP, NOOP_TOPIC), *MODES.items()):
        filled(topic, bench.size(QUICK_RECORDS, _window(bench, flow).to_record + BEYOND))(bench)


def _measure(flow: Flow, options: Mapping[str, Any], bench: Bench) -> Figures:
    topic = MODES.get(flow, NOOP_TOPIC)
    arguments = flow_arguments(bench, topic, IN_FLIGHT, "noop", _window(bench, flow), keep_topics=True, **options)
    broker, client = Broker.at(bench.kafka), admin(KafkaSettings(bootstrap_servers=bench.kafka))
    wait_topic = f"{arguments.group}.wait"
    try:
        figures = measure_flow(flow, bench, replace(arguments, broker_pid=broker.pid))
        # Of the bare loop two entries per record, once all are settled.
        handled = held(client, wait_topic, PARTITIONS) / 2 or 1
        handled = held(client, topic, PARTITIONS) if flow in MODES else handled
        input_bytes = broker.topic_bytes(topic) / held(client, topic, PARTITIONS)
        wait_bytes = broker.topic_bytes(wait_topic) / handled
        figures |= {INPUT_BYTES: input_bytes, WAIT_BYTES: wait_bytes, ALL_BYTES: input_bytes + wait_bytes}
        return {**figures, BROKER_CPU: figures["broker_cpu_s"] / figures["records"] * 1e6}
    finally:
        delete(bench.kafka, wait_topic, f"{arguments.group}.dlq")


def _costs(text: str, name: str) -> list[Line]:
    return [
        Line(f"{text}: wait record and tombstone", (COST, name, WAIT_BYTES), "B/record"),
        Line(f"{text}: broker CPU", (COST, name, BROKER_CPU), "µs/record"),
        Line(f"{text}: client CPU", (COST, name, CPU), "µs/record"),
    ]


def _mode(text: str, name: str, broker_most: float | None = None, bytes_most: float | None = None) -> list[Line]:
    ours = (COST, name)
    return [
        *_costs(text, name),
        Line(f"{text} / plain: bytes", (*ours, ALL_BYTES), to=(*THEIRS, ALL_BYTES), most=bytes_most, why=WHY),
        Line(f"{text} / plain: broker CPU", (*ours, BROKER_CPU), to=(*THEIRS, BROKER_CPU), most=broker_most, why=WHY),
        Line(f"{text} / plain: client CPU", (*ours, CPU), to=(*THEIRS, CPU)),
    ]


THEIRS: Final = (COST, flows.PLAIN.name)
WHY: Final = "../docs/decisions/0021-what-the-targets-miss.md#cost-of-the-pattern"
LINES: Final = (
    Line("A record in the input topic", (*THEIRS, INPUT_BYTES), "B/record"),
    Line("Plain: broker CPU", (*THEIRS, BROKER_CPU), "µs/record"),
    Line("Plain: client CPU", (*THEIRS, CPU), "µs/record"),
    *_costs("Bare loop", flows.BARE_LOOP.name),
    *_mode("Registry", flows.REGISTRY.name),
    *_mode("Registry, deferred", flows.DEFERRED.name, 1.5, 1.1),
    *_mode("Registry, off", flows.OFF.name),
    *(line for kind in ("none", "zstd") for line in _costs(f"Compression {kind}", COMPRESSIONS[kind])[::2]),
)

ROW: Final = Row(7, "Cost of the pattern", _cases, LINES, warm_up=warm_up(NOOP_TOPIC))
