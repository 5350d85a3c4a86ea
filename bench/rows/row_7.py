"""Row 7: what the pattern costs beside plain consume-and-commit, and what compression and batching bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from bench.contenders.broker_usage import OFFSETS_TOPIC, Broker
from bench.contenders.flows import (
    BARE_LOOP,
    PLAIN,
    REGISTRY,
    Flow,
    Window,
    deadline_s,
    flow_arguments,
    require_window,
)
from bench.contenders.load import PARTITIONS, Mixture, Share, fill, mean_call_s
from bench.contenders.registry_settings import WAIT_PARTITIONS, delete_topics
from bench.contenders.warm_up import warm_up
from bench.harness.process import run_flow
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row
from bench.rows.figure_lines import figure_line, ratio_line
from wait_registry.kafka.clients import admin
from wait_registry.kafka.requests import answer
from wait_registry.settings.kafka import KafkaSettings

ABOUT: Final = """\
The same records of 200 bytes, the same no-op. *Plain* reads, calls and commits every half second (`bench/bare_loop.py
--plain`), the topic again and again; the bare loop adds wait record and tombstone; the registry is the product with
everything on. All of them take two turns each, by turns, after a quarter of a minute in which the bare loop works
unmeasured: a broker that has just started takes longer for everything.

*Bytes written* are what stands in the broker's segments afterwards (`*.log`), by record: wait record and tombstone in
the wait topic, and committed offsets. One replica; with three the broker writes three times as much. Compaction hasn't
run: in the long run a wait topic holds what is unresolved and a day of the tombstones. *Broker CPU* is that of the
broker's process between the contender's two marks, whatever it does then: reading the input, taking the wait topic,
its own threads. *Client CPU* is the contender's own.

*Compression* is varied in the bare loop, whose clients are set as the product's but for that: it always takes lz4.
*Batching* is `linger_ms`, in the product: at full speed, where batches are full whatever it is, and with calls that
wait (10 % 1 s, 90 % 200 ms, N = 500: some 1,800 records a second), where it says how many records share a batch.
"""

COST: Final = "at full speed"
SLOW_BATCHING: Final = "at 1,800 records/s"
COMPRESSIONS: Final = {"none": "bare loop, uncompressed", "lz4": BARE_LOOP.name, "zstd": "bare loop, zstd"}
LINGERS_MS: Final = {1: "registry, linger 1 ms", 5: REGISTRY.name, 20: "registry, linger 20 ms"}

NOOP_TOPIC: Final = "bench.r7.noop"
# Holds hardly more than is measured: the registry works it off to its end.
REGISTRY_TOPIC: Final = "bench.r7.registry"
SLOW_TOPIC: Final = "bench.r7.slow"
MIXTURE: Final[Mixture] = (Share(10, 1000), Share(90, 200))
IN_FLIGHT: Final = 50
SLOW_IN_FLIGHT: Final = 500
SECONDS: Final = 6.0
TURNS: Final = 2
# Records a second where this was written.
NOOP_PER_S: Final[Mapping[Flow, float]] = {PLAIN: 1_200_000, BARE_LOOP: 90_000, REGISTRY: 53_000}
BEYOND: Final = 20_000
SLOW_WARM_S, SLOW_SECONDS, SLOW_REST_S = 3.0, 7.0, 1.0
QUICK_WINDOW: Final = Window(500, 1_900, 120.0)
QUICK_RECORDS: Final = 2_000
CPU: Final = "cpu_us_per_record"
BROKER_CPU: Final = "broker_cpu_us_per_record"
# So that the rest of the topic is worked off, tombstones and all, before the processor is killed.
SETTLE: Final = ("--idle-s", "1")


def _cases(bench: Bench) -> Sequence[Case]:
    def noop(name: str, flow: Flow, *options: str) -> Contender:
        topic = REGISTRY_TOPIC if flow is REGISTRY else NOOP_TOPIC
        return _contender(name, flow, topic, IN_FLIGHT, "noop", _window(bench, flow), *options)

    def compressed(kind: str) -> Contender:
        return noop(COMPRESSIONS[kind], BARE_LOOP, "--compression", kind)

    def lingering(linger_ms: int) -> Contender:
        return noop(LINGERS_MS[linger_ms], REGISTRY, "--linger-ms", str(linger_ms), *SETTLE)

    plain = noop(PLAIN.name, PLAIN)
    if bench.quick:
        return [Case(COST, [plain, compressed("zstd"), lingering(5)], prepare=_fill_noop)]
    contenders = [plain, *map(compressed, COMPRESSIONS), *map(lingering, LINGERS_MS)]
    return [
        Case(COST, contenders, turns=TURNS, prepare=_fill_noop),
        Case(SLOW_BATCHING, [_slow(ms) for ms in LINGERS_MS], turns=TURNS, prepare=_fill_slow),
    ]


def _slow(linger_ms: int) -> Contender:
    window = Window.lasting(_slow_per_s(), SLOW_WARM_S, SLOW_SECONDS)
    options = ("--linger-ms", str(linger_ms), *SETTLE)
    return _contender(LINGERS_MS[linger_ms], REGISTRY, SLOW_TOPIC, SLOW_IN_FLIGHT, "timed", window, *options)


def _slow_per_s() -> float:
    return SLOW_IN_FLIGHT / mean_call_s(MIXTURE)


def _window(bench: Bench, flow: Flow) -> Window:
    return QUICK_WINDOW if bench.quick else Window.lasting(NOOP_PER_S[flow], flow.warm_s, SECONDS)


def _fill_noop(bench: Bench) -> None:
    for flow, topic in ((BARE_LOOP, NOOP_TOPIC), (REGISTRY, REGISTRY_TOPIC)):
        fill(bench.kafka, topic, bench.size(QUICK_RECORDS, _window(bench, flow).to_record + BEYOND))


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
        require_window(bench, window, figures)
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
    figure_line("A record in the input topic", (COST, PLAIN.name, "input_bytes_per_record"), "B/record"),
    figure_line("Plain: committed offsets", (COST, PLAIN.name, "offset_bytes_per_record"), "B/record"),
    figure_line("Plain: broker CPU", (COST, PLAIN.name, BROKER_CPU), "µs/record"),
    figure_line("Plain: client CPU", (COST, PLAIN.name, CPU), "µs/record"),
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
        (COST, PLAIN.name, BROKER_CPU),
    ),
    ratio_line("Registry / plain: client CPU", (COST, OURS, CPU), (COST, PLAIN.name, CPU)),
    *(line for kind, name in COMPRESSIONS.items() for line in _rated(f"Compression {kind}, bare loop", COST, name)),
    *(line for ms, name in LINGERS_MS.items() for line in _rated(f"Linger {ms} ms, full speed", COST, name)),
    *(
        line
        for ms, name in LINGERS_MS.items()
        for line in _costs(f"Linger {ms} ms, 1,800 records/s", SLOW_BATCHING, name)
    ),
)

ROW: Final = Row(7, "Cost of the pattern", ABOUT, _cases, LINES, warm_up=partial(warm_up, topic=NOOP_TOPIC))
