"""What a broker promised to commit is committed after `kill -9`.

Kafka 4.3.0 to 4.4.0 break this promise (docs/decisions/0040), and fail here in about half of the runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.kafka.clients import admin
from wait_registry.kafka.fenced_producer import FencedProducer, ToSend
from wait_registry.kafka.positions import end_offsets
from wait_registry.settings.kafka import KafkaSettings
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import LOOPBACK, free_ports

PARTITIONS = range(6)


def unable_to_reach_itself(ports: tuple[int, ...]) -> Mapping[str, str]:
    """Return properties of a broker that decides about transactions, and can send their markers to no partition."""
    clients, controller, itself, nowhere = (f"{LOOPBACK}:{port}" for port in ports)
    return {
        "listeners": f"PLAINTEXT://{clients},CONTROLLER://{controller},ITSELF://{itself}",
        "advertised.listeners": f"PLAINTEXT://{clients},ITSELF://{nowhere}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ITSELF:PLAINTEXT",
        "inter.broker.listener.name": "ITSELF",
        # It would ask itself about each transaction, too.
        "transaction.partition.verification.enable": "false",
    }


@pytest.mark.guarantee("P4.3", "R1.3")
@pytest.mark.fault("F98")
def test_a_commit_that_was_promised_before_a_kill_is_readable_after_it(tmp_path: Path) -> None:
    clients, controller, *others = free_ports(4)
    broker = EmbeddedBroker(
        tmp_path, (clients, controller), properties=unable_to_reach_itself((clients, controller, *others))
    )
    with broker:
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        topic, client = Topics(broker.bootstrap_servers).create("committed", len(PARTITIONS)), admin(kafka)
        records = [ToSend(topic, partition, b"key", b"value", []) for partition in PARTITIONS]
        producer = FencedProducer(kafka, "committing", 30_000, queued=len(records))
        with closing(producer):
            producer.fence()
            producer.write([lambda: records], {}, "writing a record to each partition")
        assert end_offsets(client, topic, PARTITIONS, "read_committed") == dict.fromkeys(PARTITIONS, 0)
        broker.kill()
    with EmbeddedBroker(tmp_path, (clients, controller)):
        # The record and its marker.
        expected = dict.fromkeys(PARTITIONS, 2)
        wait_until(
            lambda: end_offsets(client, topic, PARTITIONS, "read_committed") == expected,
            what="the end of each partition",
        )
