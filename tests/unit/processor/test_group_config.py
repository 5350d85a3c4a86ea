"""What `kafka.librdkafka` says of a property that the processor tunes counts, under each of its names."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from processor.intake.group_config import TUNING, group_config
from tests.support.naming import Names
from tests.support.settings import settings_against


@pytest.mark.parametrize("name", [*TUNING, "fetch.message.max.bytes"])
def test_it_replaces_ours(name: str) -> None:
    given = {name: 77_777}
    settings = settings_against("127.0.0.1:1", "postgresql://x@127.0.0.1:1/x", Names(), {"kafka.librdkafka": given})
    config = group_config(settings)
    assert config[name] == 77_777
    # Two names of one property would be counted by their order.
    assert not {"fetch.message.max.bytes", "max.partition.fetch.bytes"} <= set(config)


def test_the_names_are_those_of_the_client() -> None:
    assert Consumer({"group.id": "any", **TUNING}) is not None
