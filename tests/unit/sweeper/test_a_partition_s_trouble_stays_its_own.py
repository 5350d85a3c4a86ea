"""Whatever fails in one partition, clients that can't be made or closed among it, is that partition's result."""

from __future__ import annotations

import pytest

from sweeper.export import PartitionExport
from sweeper.partition_result import Skip
from sweeper.partition_sweep import sweep_partition
from sweeper.wait_topic import WaitTopic
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.root import Settings

TOPIC = WaitTopic(TopicIdentity("wait", "id", 1), 86_400_000)


class Part:
    """Something to close, which may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed = False
        self._error = error

    def close(self) -> None:
        self.closed = True
        if self._error is not None:
            raise self._error


def settings(**librdkafka: str) -> Settings:
    return Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:1", "librdkafka": librdkafka}})


def test_a_client_that_cannot_be_made_skips_its_partition() -> None:
    result = sweep_partition(settings(**{"plugin.library.paths": "no-such-library"}), TOPIC, 4)
    assert (result.partition, result.skip) == (4, Skip.REFUSED)
    assert "no-such-library" in result.reason


def test_each_part_is_closed_whatever_the_others_do(caplog: pytest.LogCaptureFixture) -> None:
    export = PartitionExport(settings(), TOPIC, 4)
    parts = [Part(ValueError("a broken producer")), Part(ValueError("a broken reader")), Part()]
    for name, part in zip(("_producer", "_reader", "_view"), parts, strict=True):
        setattr(export, name, part)
    export.close()
    assert [part.closed for part in parts] == [True, True, True]
    assert [word for word in ("a broken producer", "a broken reader") if word not in caplog.text] == []
