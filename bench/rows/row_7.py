"""Row 7: what the pattern costs beside plain consume-and-commit, and what compression and batching bring."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from bench.contenders.broker_usage import OFFSETS_TOPIC, Broker
from bench.contenders.flows import BARE_LOOP, REGISTRY, Flow, Window, deadline_s, flow_arguments
from bench.contenders.load import PARTITIONS, Mixture, Share, fill, mean_call_s
from bench.contenders.registry_settings import WAIT_PARTITIONS, delete_topics
from bench.harness.process import run_flow
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row
from bench.rows.figure_lines import figure_line, ratio_line
from wait_registry.kafka.clients import admin
from wait_registry.kafka.requests import answer
from wait_registry.settings.kafka import KafkaSettings

ABOUT: Final = """\
The same records of 200 bytes, the same no-op. *Plain* reads, calls and commits every half second (`bench/bare_loop.py
--plain`); the bare loop adds wait record and tombstone; the registry is the product with everything on.

*Bytes written* are what stands in the broker's segments afterwards (`*.log`), by record: wait record and tombstone in
the wait topic, and committed offsets. One replica; with three the broker writes three times as much. Compaction hasn't
run: in the long run a wait topic holds what is unresolved and a day of the tombstones. *Broker CPU* is that of the
broker's process between the contender's two marks, whatever it does then: reading the input, taking the wait topic,
its own threads. *Client CPU* is the contender's own.

*Compression* is varied in the bare loop, which sets its producer alike but for that: the product always takes lz4.
*Batching* is `linger_ms`, in the product: at full speed, where batches are full whatever it is, and with calls that
wait (10 % 1 s, 90 % 200 ms, N = 500: some 1,800 records a second), where it says how many records share a batch.
"""

COST: Final = "cost"
COMPRESSION: Final = "compression"
BATCHING: Final = "batching at full speed"
SLOW_BATCHING: Final = "batching at 1,800 records/s"
PLAIN: Final = "plain consume and commit"
COMPRESSIONS: Final = ("none", "lz4", "zstd")
LINGERS_MS: Final = (1, 5, 20)

NOOP_TOPIC: Final = "bench.r7.noop"
SLOW_TOPIC: Final = "bench.r7.slow"
MIXTURE: Final[Mixture] = (Share(10, 1000), Share(90, 200))
IN_FLIGHT: Final = 50
SLOW_IN_FLIGHT: Final = 500
NOOP_WINDOW: Final = Window(60_000, 280_000, 120.0)
NOOP_RECORDS: Final = 300_000
SLOW_WARM_S, SLOW_SECONDS, SLOW_REST_S = 3.0, 9.0, 1.0
QUICK_WINDOW: Final = Window(500, 1_900, 120.0)
QUICK_RECORDS: Final = 2_000
CPU: Final = "cpu_us_per_record"
BROKER_CPU: Final = "broker_cpu_us_per_record"
# So that the rest of the topic is worked off, tombstones and all, before the processor is killed.
SETTLE: Final = ("--idle-s", "1")


def _cases(bench: Bench) -> Sequence[Case]:
    def noop(name: str, flow: Flow, *options: str) -> Contender:
        window = QUICK_WINDOW if bench.quick else NOOP_WINDOW
        return _contender(name, flow, NOOP_TOPIC, IN_FLIGHT, "noop", window, *options)

    cost = [
        noop(PLAIN, BARE_LOOP, "--plain"),
        noop(BARE_LOOP.name, BARE_LOOP),
        noop(REGISTRY.name, REGISTRY, "--linger-ms", "5", *SETTLE),
    ]
    compressed = [noop(name, BARE_LOOP, "--compression", name) for name in COMPRESSIONS]
    if bench.quick:
        return [Case(COST, cost, prepare=_fill_noop), Case(COMPRESSION, compressed[2:], prepare=_fill_noop)]
    lingering = [noop(_linger(ms), REGISTRY, "--linger-ms", str(ms), *SETTLE) for ms in LINGERS_MS]
    return [
        Case(COST, cost, prepare=_fill_noop),
        Case(COMPRESSION, compressed, prepare=_fill_noop),
        Case(BATCHING, lingering, prepare=_fill_noop),
        Case(SLOW_BATCHING, [_slow(ms) for ms in LINGERS_MS], prepare=_fill_slow),
    ]


def _linger(milliseconds: int) -> str:
    return f"linger {milliseconds} ms"


def _slow(linger_ms: int) -> Contender:
    window = Window.lasting(_slow_per_s(), SLOW_WARM_S, SLOW_SECONDS)
    options = ("--linger-ms", str(linger_ms), *SETTLE)
    return _contender(_linger(linger_ms), REGISTRY, SLOW_TOPIC, SLOW_IN_FLIGHT, "timed", window, *options)


def _slow_per_s() -> float:
    return SLOW_IN_FLIGHT / mean_call_s(MIXTURE)


def _fill_noop(bench: Bench) -> None:
    fill(bench.kafka, NOOP_TOPIC, bench.size(QUICK_RECORDS, NOOP_RECORDS))


def _fill_slow(bench: Bench) -> None:
    fill(bench.kafka, SLOW_TOPIC, round(_slow_per_s() * (SLOW_WARM_S + SLOW_SECONDS + SLOW_REST_S)), MIXTURE)


def _contender(
    name: str, flow: Flow, topic: str, in_flight: int, handler: str, window: Window, *options: str
) -> Contender:
    measure = partial(_measure, flow, topic, in_flight, handler, window, options)
    return Contender(name, measure, flow.lacks, deadline_s=deadline_s(window) + 60)


def _measure(
    flow: Flow, topic: str, in_flight: int, handler: str, window: Window, options: tuple[str, ...], bench: Bench
) -> Figures:
    broker = Broker.at(bench.kafka)
    arguments = flow_arguments(bench, topic, in_flight, handler, window, broker.pid)
    command = [*flow.program(), *arguments.command_line(), *options, "--keep-topics"]
    offsets_before = broker.topic_bytes(OFFSETS_TOPIC)
    wait_topic = f"{arguments.group}.wait"
    try:
        figures = run_flow(bench, command, deadline_s=deadline_s(window))
        entries = _records(bench.kafka, wait_topic, WAIT_PARTITIONS)
        # Two entries a record, once all is resolved.
        handled = entries / 2 or window.to_record
        return {
            **figures,
            BROKER_CPU: figures["beside_cpu_s"] / figures["records"] * 1e6,
            "input_bytes_per_record": broker.topic_bytes(topic) / _records(bench.kafka, topic, PARTITIONS),
            "wait_bytes_per_record": broker.topic_bytes(wait_topic) / handled,
            "offset_bytes_per_record": (broker.topic_bytes(OFFSETS_TOPIC) - offsets_before) / handled,
        }
    finally:
        delete_topics(bench.kafka, wait_topic, f"{arguments.group}.dlq")


def _records(kafka: str, topic: str, partitions: int) -> int:
    client = admin(KafkaSettings(bootstrap_servers=kafka))
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    return sum(answer(client, future, "asking for ends").offset for future in client.list_offsets(asked).values())


def _costs(text: str, case: str, name: str) -> list[Line]:
    return [
        figure_line(f"{text}: wait record and tombstone", (case, name, "wait_bytes_per_record"), "B/record"),
        figure_line(f"{text}: broker CPU", (case, name, BROKER_CPU), "µs/record"),
        figure_line(f"{text}: client CPU", (case, name, CPU), "µs/record"),
    ]


def _rated(text: str, case: str, name: str) -> list[Line]:
    return [figure_line(text, (case, name, "records_per_s"), "records/s"), *_costs(text, case, name)]


OURS: Final = REGISTRY.name
LINES: Final = (
    figure_line("A record in the input topic", (COST, PLAIN, "input_bytes_per_record"), "B/record"),
    figure_line("Plain: committed offsets", (COST, PLAIN, "offset_bytes_per_record"), "B/record"),
    figure_line("Plain: broker CPU", (COST, PLAIN, BROKER_CPU), "µs/record"),
    figure_line("Plain: client CPU", (COST, PLAIN, CPU), "µs/record"),
    *_costs("Bare loop", COST, BARE_LOOP.name),
    *_costs("Registry", COST, OURS),
    figure_line("Registry: committed offsets", (COST, OURS, "offset_bytes_per_record"), "B/record"),
    ratio_line(
        "Registry: bytes written by bytes of the record",
        (COST, OURS, "wait_bytes_per_record"),
        (COST, OURS, "input_bytes_per_record"),
    ),
    ratio_line(
        "Registry / plain: broker CPU",
        (COST, OURS, BROKER_CPU),
        (COST, PLAIN, BROKER_CPU),
    ),
    ratio_line("Registry / plain: client CPU", (COST, OURS, CPU), (COST, PLAIN, CPU)),
    *(line for name in COMPRESSIONS for line in _rated(f"Compression {name}, bare loop", COMPRESSION, name)),
    *(line for ms in LINGERS_MS for line in _rated(f"Linger {ms} ms, full speed", BATCHING, _linger(ms))),
    *(line for ms in LINGERS_MS for line in _costs(f"Linger {ms} ms, 1,800 records/s", SLOW_BATCHING, _linger(ms))),
)

ROW: Final = Row(7, "Cost of the pattern", ABOUT, _cases, LINES)
