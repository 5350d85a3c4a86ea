"""Topics on the real broker: their identity and ends, and that `create_topics` makes what a start asks for."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Collection
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.conftest import SettingsFactory
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.kafka import topics as topics_module
from wait_registry.kafka.clients import admin, producer_config
from wait_registry.kafka.cluster import cluster_id, describe_topic, identity_changed, require_same_identity
from wait_registry.kafka.positions import earliest_offsets, end_offsets, firsts_in_time, offsets_from_time
from wait_registry.kafka.topic_rules import TopicState
from wait_registry.kafka.topics import check_topics, create_topics, require_topics, topic_config
from wait_registry.kafka.wait_topic import describe_wait_topic, require_same_wait_topic
from wait_registry.records.wait_partition import wait_partitions
from wait_registry.settings.kafka import KafkaSettings


@pytest.fixture
def cluster(kafka: str) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=kafka)


def test_the_cluster_id_is_the_same_for_every_client(cluster: KafkaSettings, topics: Topics) -> None:
    assert cluster_id(admin(cluster)) == cluster_id(topics.admin) == topics.admin.list_topics(timeout=15).cluster_id


def test_a_topic_that_grew_is_not_the_same(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic = topics.create(names("a"), 1)
    before = describe_topic(admin(cluster), topic)
    topics.grow(topic, 2)
    now = describe_topic(admin(cluster), topic)
    assert identity_changed(before, now) == f"topic {topic} had 1 partitions and has 2 now"
    with pytest.raises(ConfigurationError, match=r"used with 1 partitions, but wait.partitions is now 2.*back to 1"):
        require_same_identity(before, now)


@pytest.mark.guarantee("P8.11")
def test_partitions_added_to_a_wait_topic_stay_empty(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic, client = topics.create(names("a"), 2), admin(cluster)
    before = describe_wait_topic(client, topic, 2)
    topics.grow(topic, 4)
    assert describe_wait_topic(client, topic, 2) == before
    require_same_wait_topic(client, before)
    topics.produce(topic, [Outgoing(b"v", b"k", partition=3)])
    said = r"has 4 partitions, and records in partition 3, expected none beyond wait.partitions = 2"
    with pytest.raises(ConfigurationError, match=said):
        describe_wait_topic(client, topic, 2)
    with pytest.raises(ConfigurationError, match=said):
        require_same_wait_topic(client, before)
    assert describe_wait_topic(client, topic, 4).partitions == 4


def test_a_recreated_wait_topic_of_any_size_is_reported(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic, client = topics.create(names("a"), 2), admin(cluster)
    another = replace(describe_wait_topic(client, topic, 2), topic_id="another", partitions=8)
    with pytest.raises(ConfigurationError, match=f"topic {topic} was recreated"):
        require_same_wait_topic(client, another)


def test_a_wait_topic_with_too_few_partitions_is_refused(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic = topics.create(names("a"), 2)
    with pytest.raises(ConfigurationError, match=r"has 2 partitions, expected wait.partitions = 8 at least"):
        describe_wait_topic(admin(cluster), topic, 8)


@pytest.mark.guarantee("P8.11")
def test_a_recreated_topic_is_not_the_same(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic = topics.create(names("a"), 1)
    before = describe_topic(admin(cluster), topic)
    topics.delete(topic)
    topics.create(topic, 1)
    changed = identity_changed(before, describe_topic(admin(cluster), topic))
    assert changed is not None
    assert changed.startswith(f"topic {topic} was recreated: its ID was {before.topic_id} and is now ")
    with pytest.raises(ConfigurationError, match=r"was recreated.*Topic recreated by mistake"):
        require_same_identity(before, describe_topic(admin(cluster), topic))


def test_a_deleted_wait_topic_must_not_be_created_again(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic, client = topics.create(names("a"), 1), admin(cluster)
    recorded = describe_topic(client, topic)
    require_same_wait_topic(client, recorded)
    topics.delete(topic)
    wait_until(lambda: topic not in client.list_topics(timeout=15).topics, what="the deletion")
    with pytest.raises(ConfigurationError, match=r"was deleted. Don't create it again") as refusal:
        require_same_wait_topic(client, recorded)
    assert "Create it:" not in str(refusal.value)


def test_a_missing_topic_is_a_configuration_error_with_the_command(cluster: KafkaSettings, names: Names) -> None:
    client = admin(cluster)
    with pytest.raises(ConfigurationError, match=r"doesn't exist. Create it: `waitreg topics create`"):
        describe_topic(client, names("absent"))
    with pytest.raises(ConfigurationError, match="doesn't exist"):
        end_offsets(client, names("absent"), [0])
    with pytest.raises(ConfigurationError, match="doesn't exist"):
        topic_config(client, names("absent"))


def test_a_missing_partition_is_a_configuration_error(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic = topics.create(names("a"), 2)
    with pytest.raises(ConfigurationError, match="has 2 partitions; there is no partition 2"):
        end_offsets(admin(cluster), topic, [0, 1, 2])


def test_ends_count_records_and_transaction_markers(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic = topics.create(names("a"), 2)
    client = admin(cluster)
    assert end_offsets(client, topic, [0, 1]) == {0: 0, 1: 0}
    producer = Producer(producer_config(cluster, **{"transactional.id": names("tx")}))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"one", partition=0)
    producer.flush(30)
    assert end_offsets(client, topic, [0, 1], "read_uncommitted") == {0: 1, 1: 0}
    assert end_offsets(client, topic, [0, 1], "read_committed") == {0: 0, 1: 0}
    producer.commit_transaction(30)
    # The coordinator answers when it has decided; the markers follow.
    wait_until(lambda: end_offsets(client, topic, [0, 1]) == {0: 2, 1: 0}, what="the marker")
    assert earliest_offsets(client, topic, [0, 1]) == {0: 0, 1: 0}


def test_a_time_before_1970_is_before_all_records(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic, client, now_ms = topics.create(names("a"), 1), admin(cluster), round(time.time() * 1000)
    topics.produce(topic, [Outgoing(b"", timestamp_ms=now_ms + ahead_ms) for ahead_ms in (-9_000, 0, -5_000)])
    for time_ms in (0, -1, -2, -3, -315_619_200_000):
        assert offsets_from_time(client, topic, [0], time_ms) == {0: (0, now_ms - 9_000)}
        assert firsts_in_time(client, {(topic, 0): time_ms}, 15) == {(topic, 0): (0, now_ms - 9_000)}


@pytest.mark.guarantee("P3.15")
def test_our_producers_put_a_key_where_java_puts_it(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    # Known answers of org.apache.kafka.common.utils.Utils.murmur2, from Kafka's own UtilsTest.
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    topic = topics.create(names("a"), 7)
    producer = Producer(producer_config(cluster))
    for key in hashes:
        producer.produce(topic, key=key)
    assert producer.flush(30) == 0
    landed = {record.key: record.partition for record in topics.read(topic)}
    assert landed == {key: (value & 0x7FFFFFFF) % 7 for key, value in hashes.items()}


@pytest.mark.guarantee("P3.15")
def test_processor_and_producers_choose_one_partition(cluster: KafkaSettings, topics: Topics, names: Names) -> None:
    topic = topics.create(names("a"), 7)
    wait_ids = [str(uuid.uuid4()) for _ in range(2_000)]
    producer = Producer(producer_config(cluster))
    for wait_id in wait_ids:
        producer.produce(topic, key=wait_id)
    assert producer.flush(30) == 0
    landed = {record.key: record.partition for record in topics.read(topic)}
    computed = wait_partitions(wait_ids, 7)
    assert landed == {wait_id.encode(): partition for wait_id, partition in zip(wait_ids, computed, strict=True)}
    assert [wait_partitions([wait_id], 7) for wait_id in wait_ids] == [[partition] for partition in computed]


def test_the_default_producer_writes_the_largest_wait_record(prepared: SettingsFactory, topics: Topics) -> None:
    settings = prepared({"wait.max_message_bytes": 3_000_000})
    value = b"x" * 2_900_000
    producer = Producer(producer_config(settings.kafka, **{"compression.type": "none"}))
    failures: list[object] = []
    producer.produce(settings.wait.topic, value, key=b"k", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert failures == [None]
    (record,) = topics.read(settings.wait.topic)
    assert (record.value, record.timestamp_type) == (value, "append")


def test_created_topics_satisfy_the_rules_of_a_single_broker(prepared: SettingsFactory) -> None:
    settings = prepared({"processor.expiry_policy": "redeliver", "dead_letter.topic": "{topic}.{group}.dlq"})
    found = check_topics(settings)
    assert len({one.subject for one in found}) == 5
    broken = {one.id.partition("replication")[2] for one in found if one.severity is not Severity.OK}
    assert broken == {".factor"}
    assert Severity.ERROR not in {one.severity for one in found}


def test_missing_topics_are_errors_for_services_that_use_them(settings_for: SettingsFactory, topics: Topics) -> None:
    settings = settings_for()
    topics.create_own(settings)
    topics.delete(settings.processor.topics[0])
    topics.delete(settings.dead_letter.topic)
    topics.create(f"{settings.processor.topics[0]}s")
    with pytest.raises(ConfigurationError, match=f"did you mean {settings.processor.topics[0]}s?"):
        require_topics(settings, "processor")
    with pytest.raises(ConfigurationError, match="the input topic is missing"):
        require_topics(settings, "processor")
    with pytest.raises(ConfigurationError) as caught:
        require_topics(settings, "sink")
    assert "input topic" not in str(caught.value)
    assert "`waitreg topics create`" in str(caught.value)


@pytest.mark.guarantee("P8.3")
def test_a_topic_still_unknown_is_asked_for_again(prepared: SettingsFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, read, asked = prepared(), topics_module.read_states, []

    def lags_at_first(client: AdminClient, names: list[str], optional: Collection[str]) -> dict[str, TopicState]:
        asked.append(names)
        states = read(client, names, optional)
        return {name: states[name] for name in names if name != settings.wait.topic or len(asked) > 2}

    monkeypatch.setattr(topics_module, "read_states", lags_at_first)
    require_topics(settings, "processor")
    assert len(asked) == 3


def test_unwise_topics_are_logged_and_accepted(prepared: SettingsFactory, caplog: pytest.LogCaptureFixture) -> None:
    settings = prepared()
    with caplog.at_level(logging.WARNING):
        require_topics(settings, "sweeper")
    both = f"topics {settings.wait.topic}, {settings.dead_letter.topic}"
    assert f"{both}: replication factor is 1, expected at least 3" in caplog.text, "one warning for all of them"


def test_more_replicas_than_brokers_say_which_setting_to_lower(settings_for: SettingsFactory) -> None:
    settings = settings_for({"wait.replication_factor": 3})
    with pytest.raises(ConfigurationError, match=r"can't have 3 replicas: .*Set wait\.replication_factor"):
        create_topics(settings)
