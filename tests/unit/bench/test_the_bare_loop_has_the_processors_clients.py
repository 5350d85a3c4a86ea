"""The ceiling has the processor's client settings: else their ratio would say something about those."""

from __future__ import annotations

from typing import Any

from bench.bare_loop import consumer_properties, producer_properties
from bench.contenders.arguments import FlowArguments
from bench.contenders.registry_settings import registry_settings
from processor.group_config import TUNING, group_config
from processor.service import ProcessorService

SETTINGS = registry_settings(FlowArguments("localhost:9092", "orders", "shop", 50, "noop", 10, 20, 7.5), linger_ms=5.0)


# Once in ten seconds, of the client itself.
LOOKS = ("statistics.interval.ms", "stats_cb")


def without(properties: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


def test_its_consumer_begins_at_the_logs_start_and_else_is_the_processors() -> None:
    ours = ("auto.offset.reset", "enable.partition.eof", "error_cb")
    assert without(consumer_properties(SETTINGS), *ours) == without(group_config(SETTINGS), *ours)
    assert consumer_properties(SETTINGS)["auto.offset.reset"] == "earliest"
    assert TUNING.items() <= consumer_properties(SETTINGS).items()


def test_its_producer_is_the_processors() -> None:
    processors = ProcessorService(SETTINGS).producer_config()
    assert without(producer_properties(SETTINGS), "error_cb", *LOOKS) == without(processors, "error_cb", *LOOKS)
    assert producer_properties(SETTINGS, "zstd")["compression.type"] == "zstd"
