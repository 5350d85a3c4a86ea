"""P4: a connector's producer takes whatever ours take; beyond that only the topic's own limit counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.evidence import ROOT
from wait_registry.cli.connect.connector_file import read_connector
from wait_registry.cli.connect.variables import variable
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES
from wait_registry.settings.loading import load_settings

FOLDER = ROOT / "connect-configs"
SETTINGS = load_settings({"postgres.url": "postgresql://waitreg@db/shop"}, env={})
# Sources, and sinks that put aside what they can't read.
PRODUCING = [*FOLDER.glob("expired.*.json"), *FOLDER.glob("*.sink.debezium.json")]
# What the client library takes without it: a megabyte in a buffer of 32.
DEFAULTS = {"max.request.size": "1048576", "buffer.memory": "33554432"}


@pytest.mark.guarantee("P4.17")
@pytest.mark.parametrize("file", sorted(PRODUCING), ids=lambda file: file.name)
def test_the_largest_record_that_a_processor_registers_passes(file: Path) -> None:
    config = read_connector(file, partial(variable, settings=SETTINGS)).config
    taken = {name: int(config.get(f"producer.override.{name}", default)) for name, default in DEFAULTS.items()}
    assert taken["max.request.size"] >= PRODUCER_MAX_MESSAGE_BYTES
    assert taken["buffer.memory"] >= taken["max.request.size"], "what doesn't fit into the buffer is refused as well"


def test_there_are_such_files() -> None:
    assert len(PRODUCING) == 6
