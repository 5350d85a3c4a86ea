"""A Kafka cluster of three brokers on loopback: replicated, with a controller quorum, each to be broken alone."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata

from tests.support.waiting import wait_until
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import LOOPBACK, free_ports

BROKERS = 3
REPLICATED: Mapping[str, str] = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    # Only an election that is asked for moves a leader back.
    "auto.leader.rebalance.enable": "false",
    # A killed broker is noticed, and a follower that is stalled leaves the in-sync replicas, in seconds.
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}


class EmbeddedCluster:
    """Three brokers, each controller too; topics are replicated three times and need two in-sync replicas."""

    def __init__(self, directory: Path) -> None:
        """Describe a cluster in a folder; `start` starts its brokers."""
        ports = free_ports(2 * BROKERS)
        quorum = _Quorum.of(ports[BROKERS:])
        self.brokers: dict[int, EmbeddedBroker] = {
            node: _Member(directory / f"broker-{node}", (ports[node - 1], ports[BROKERS + node - 1]), quorum, node)
            for node in range(1, BROKERS + 1)
        }
        # By default it asks a dead controller for minutes.
        refreshed = {"topic.metadata.refresh.interval.ms": 1000, "log_level": 0}
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, **refreshed})
        """A client of the whole cluster."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def start(self, nodes: Iterable[int]) -> None:
        """Start brokers, all at once, and wait until they serve."""
        with ThreadPoolExecutor(BROKERS, thread_name_prefix="cluster") as pool:
            for started in [pool.submit(self.brokers[node].start) for node in nodes]:
                started.result()

    def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Return each partition's state; none while the cluster doesn't answer."""
        try:
            return list(self.admin.list_topics(topic, timeout=5).topics[topic].partitions.values())
        except KafkaException:
            return []

    def leaders(self, topic: str) -> dict[int, int]:
        """Return who leads each partition, -1 if no broker does."""
        return {partition.id: partition.leader for partition in self.partitions(topic)}

    def wait_known(self, topic: str) -> None:
        """Wait until every broker knows a topic that has just been made: each hears of it by itself."""
        self.wait_in_sync(topic)
        for broker in self.brokers.values():
            asked = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
            wait_until(lambda asked=asked: _knows(asked, topic), what=f"{topic} known to every broker")  # type: ignore[misc]

    def wait_in_sync(self, *topics: str) -> None:
        """Wait until every partition has all its replicas in sync."""
        for topic in topics:
            wait_until(lambda name=topic: self._in_sync(name), what=f"all replicas of {topic}")  # type: ignore[misc]

    def elect_preferred(self, *topics: str) -> None:
        """Make the first replica of each partition its leader again, as kafka-leader-election does."""
        for topic in topics:
            wait_until(lambda name=topic: self._elect(name), what=f"the preferred leaders of {topic}")  # type: ignore[misc]

    def _in_sync(self, topic: str) -> bool:
        partitions = self.partitions(topic)
        return bool(partitions) and all(len(partition.isrs) == BROKERS for partition in partitions)

    def _elect(self, topic: str) -> bool:
        asked = [TopicPartition(topic, partition.id) for partition in self.partitions(topic)]
        if not asked:
            return False
        answers: dict[TopicPartition, KafkaError | None]
        # Without its timeouts: the client's binding can't parse them.
        answers = self.admin.elect_leaders(ElectionType.PREFERRED, asked).result(30)
        return all(error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED for error in answers.values())


@contextmanager
def running_cluster() -> Iterator[EmbeddedCluster]:
    """Run a cluster, and remove its data at the end."""
    with TemporaryDirectory(prefix="waitreg-cluster-", ignore_cleanup_errors=True) as folder:
        cluster = EmbeddedCluster(Path(folder))
        try:
            cluster.start(cluster.brokers)
            # Until then the client drops those that it learns to be no brokers, with what they are asked.
            wait_until(lambda: _brokers_known(cluster.admin) == BROKERS, what="a cluster of all its brokers")
            yield cluster
        finally:
            for broker in cluster.brokers.values():
                broker.kill()


def _brokers_known(client: AdminClient) -> int:
    try:
        return len(client.list_topics(timeout=5).brokers)
    except KafkaException:
        return 0


class _Quorum(NamedTuple):
    """What every member has to know of the others, before any of them has started."""

    cluster_id: str
    voters: str
    addresses: str

    @classmethod
    def of(cls, ports: Iterable[int]) -> _Quorum:
        addresses = [f"{LOOPBACK}:{port}" for port in ports]
        voters = [f"{node}@{address}:{_random_id()}" for node, address in enumerate(addresses, 1)]
        return cls(_random_id(), ",".join(voters), ",".join(addresses))


class _Member(EmbeddedBroker):
    heap = "256m"

    def __init__(self, directory: Path, ports: tuple[int, int], quorum: _Quorum, node: int) -> None:
        properties = {**REPLICATED, "node.id": str(node), "controller.quorum.bootstrap.servers": quorum.addresses}
        super().__init__(directory, ports, properties=properties, cluster_id=quorum.cluster_id, temporary=True)
        self._quorum = quorum

    def _first_voters(self) -> str:
        return f"--initial-controllers={self._quorum.voters}"


def _knows(asked: AdminClient, topic: str) -> bool:
    try:
        return asked.list_topics(timeout=5).topics[topic].error is None
    except (KafkaException, KeyError):
        return False


def _random_id() -> str:
    """Return 16 random bytes as Kafka writes ids; one that begins with a dash would be taken for an option."""
    while (identifier := urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        continue
    return identifier
