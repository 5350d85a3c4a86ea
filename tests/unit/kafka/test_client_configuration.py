"""Every client is configured so that nothing is lost, and librdkafka accepts the result."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from wait_registry.kafka.clients import admin, consumer_config, java_client_config, producer_config
from wait_registry.settings.kafka import KafkaSettings

KAFKA = KafkaSettings(
    bootstrap_servers="127.0.0.1:1",
    librdkafka={"socket.timeout.ms": 5000, "log_level": 0},
    java={"receive.buffer.bytes": 65536, "allow.auto.create.topics": False},
)


def test_a_producer_is_idempotent_and_partitions_as_java_does() -> None:
    config = producer_config(KAFKA)
    assert config["enable.idempotence"] is True
    assert config["acks"] == "all"
    assert config["partitioner"] == "murmur2_random"
    assert config["message.timeout.ms"] == 0
    assert config["bootstrap.servers"] == "127.0.0.1:1"
    assert config["socket.timeout.ms"] == 5000


def test_a_consumer_reads_committed_records_and_commits_nothing_by_itself() -> None:
    config = consumer_config(KAFKA)
    assert config["isolation.level"] == "read_committed"
    assert config["enable.auto.commit"] is False
    assert config["enable.auto.offset.store"] is False
    assert config["auto.offset.reset"] == "error"


@pytest.mark.guarantee("P8.10")
def test_a_record_larger_than_the_producers_queue_is_refused_at_once() -> None:
    tuned = KafkaSettings(bootstrap_servers="127.0.0.1:1", librdkafka={"queue.buffering.max.kbytes": 1024})
    producer = Producer(producer_config(tuned))
    with pytest.raises(KafkaException) as caught:
        producer.produce("wait", bytes(1_048_576))
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    producer.produce("wait", bytes(1_048_000))
    with pytest.raises(BufferError):
        producer.produce("wait", bytes(1_048_000))
    producer.purge()


def test_overrides_win() -> None:
    assert producer_config(KAFKA, **{"linger.ms": 5, "compression.type": "none"})["compression.type"] == "none"
    assert consumer_config(KAFKA, **{"group.id": "g", "isolation.level": "read_uncommitted"})["group.id"] == "g"


def test_the_cluster_s_address_cannot_be_changed_by_further_properties() -> None:
    elsewhere = KafkaSettings(bootstrap_servers="here:1", librdkafka={"bootstrap.servers": "there:1"})
    assert producer_config(elsewhere)["bootstrap.servers"] == "here:1"


def test_librdkafka_accepts_both() -> None:
    Producer(
        producer_config(KAFKA, **{"transactional.id": "t", "transaction.timeout.ms": 30_000, "message.timeout.ms": 0})
    )
    Consumer(consumer_config(KAFKA, **{"group.id": "g"})).close()
    admin(KAFKA)


def test_java_properties_are_texts() -> None:
    assert java_client_config(KAFKA, **{"isolation.level": "read_committed"}) == {
        "bootstrap.servers": "127.0.0.1:1",
        "receive.buffer.bytes": "65536",
        "allow.auto.create.topics": "false",
        "security.protocol": "PLAINTEXT",
        "isolation.level": "read_committed",
    }


def test_an_unknown_property_is_refused_by_librdkafka() -> None:
    with pytest.raises(Exception, match="No such configuration property"):
        Producer(producer_config(KafkaSettings(librdkafka={"no.such.thing": 1})))
