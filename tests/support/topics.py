"""Topics of one test, deleted when it ends."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.support.kafka_io import Isolation, Outgoing, ReadRecord, produce, read_all
from tests.support.settings import changed
from tests.support.waiting import PATIENCE_S, wait_until
from wait_registry.settings.tree import Settings

LEVELS = {"read_committed": IsolationLevel.READ_COMMITTED, "read_uncommitted": IsolationLevel.READ_UNCOMMITTED}
ANSWER_S = 10.0


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self._created: list[str] = []

    def create(self, name: str, partitions: int = 3, **config: str) -> str:
        """Create a topic and return its name; dots in configuration names are written as double underscores."""
        plain = {key.replace("__", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=plain)])[name].result(PATIENCE_S)
        self._created.append(name)
        wait_until(lambda: self._leaders(name) == partitions, what=f"leaders of {name}")
        return name

    def create_own(self, settings: Settings, input_partitions: int = 3) -> None:
        """Create the wait and dead letter topics as `waitreg topics create` does, and the input topics."""
        from wait_registry.kafka.topics import create_topics

        # A busy machine may need longer than a user would wait.
        create_topics(changed(settings, "kafka", request_timeout_s=PATIENCE_S))
        existing = self.admin.list_topics(timeout=PATIENCE_S).topics
        self._created += [name for name in existing if name.startswith(settings.wait.topic.split(".")[0] + ".")]
        for name in settings.processor.topics:
            if name not in existing:
                self.create(name, input_partitions)

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions to a topic, up to this number, and wait until the broker knows them."""
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(PATIENCE_S)
        wait_until(lambda: self._leaders(name) == partitions, what=f"the new partitions of {name}")

    def delete_at_end(self, *names: str) -> None:
        """Delete these topics when the test ends, even if another process made them."""
        self._created += names

    def delete(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.admin.delete_topics([name])[name].result(PATIENCE_S)
        wait_until(lambda: self._leaders(name) is None, what=f"the end of {name}")

    def _leaders(self, name: str) -> int | None:
        # The controller answers before the broker knows: what follows at once may find no topic, or one still there.
        future = self.admin.describe_topics(TopicCollection([name]))[name]
        try:
            partitions = future.result(PATIENCE_S).partitions
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise
        return sum(partition.leader is not None for partition in partitions)

    def configure(self, name: str, setting: str, value: str) -> None:
        """Set one setting of a topic, and wait until the broker answers with it."""
        entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
        wait_until(lambda: self._setting(name, setting) == value, what=f"{setting} of {name}")

    def _setting(self, name: str, setting: str) -> str:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        value: str = self.admin.describe_configs([resource])[resource].result(PATIENCE_S)[setting].value
        return value

    def delete_before(self, name: str, offsets: Mapping[int, int]) -> None:
        """Remove every record before an offset of a partition, as far as partitions are named."""
        self.configure(name, "cleanup.policy", "compact,delete")  # otherwise the broker refuses
        asked = [TopicPartition(name, partition, offset) for partition, offset in offsets.items()]
        for removed in self.admin.delete_records(asked).values():
            removed.result(PATIENCE_S)

    def produce(self, name: str, records: list[Outgoing | bytes]) -> list[tuple[int, int]]:
        """Produce records in order; see `kafka_io.produce`."""
        return produce(self.bootstrap, name, records)

    def read(self, name: str, isolation: Isolation = "read_committed") -> list[ReadRecord]:
        """Return every record of a topic; see `kafka_io.read_all`."""
        if isolation == "read_committed":
            self.wait_settled(name)
        return read_all(self.bootstrap, name, isolation)

    def wait_settled(self, name: str) -> None:
        """Wait until no transaction is open in a topic: a commit is answered before its markers are written."""
        wait_until(lambda: self._is_settled(name), what=f"{name} settled")

    def _is_settled(self, name: str) -> bool:
        try:
            return self._ends(name, "read_committed") == self._ends(name, "read_uncommitted")
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT:
                raise
            return False  # a broker died with the question; the next one goes to another

    def _ends(self, name: str, isolation: Isolation) -> dict[int, int]:
        partitions = self.admin.list_topics(name, timeout=30).topics[name].partitions
        asked = {TopicPartition(name, partition): OffsetSpec.latest() for partition in partitions}
        level = LEVELS[isolation]
        answers = self.admin.list_offsets(asked, isolation_level=level, request_timeout=ANSWER_S) if asked else {}
        return {place.partition: answer.result(PATIENCE_S).offset for place, answer in answers.items()}

    def close(self) -> None:
        """Ask the broker to delete what this test created, and wait for its answer.

        A client that is dropped while an answer is on its way may be destroyed in its own thread, which aborts the run.
        """
        if self._created:
            for deleted in self.admin.delete_topics(sorted(set(self._created))).values():
                deleted.exception(30)
