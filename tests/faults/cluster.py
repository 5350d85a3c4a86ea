"""A Kafka cluster of three brokers on loopback: replicated, with a controller quorum, each to be broken alone."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.waiting import wait_until
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.ports import LOOPBACK, free_ports

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


class PartitionState(NamedTuple):
    """Which broker leads a partition (None: no broker), and which brokers are in sync."""

    leader: int | None
    in_sync: frozenset[int]


class EmbeddedCluster:
    """Three brokers, each controller too; topics are replicated three times and need two in-sync replicas."""

    def __init__(self, directory: Path | None = None, properties: Mapping[str, str] | None = None) -> None:
        """Describe a cluster that isn't started yet.

        Args:
            directory: its folder; a temporary one when None.
            properties: further properties of every broker; they win.
        """
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="waitreg-cluster-"))
        ports = free_ports(2 * BROKERS)
        quorum = _Quorum.of(ports[BROKERS:])
        self.brokers: dict[int, EmbeddedBroker] = {
            node: _Member(
                self.directory / f"broker-{node}",
                (ports[node - 1], ports[BROKERS + node - 1]),
                quorum,
                {**REPLICATED, **(properties or {}), "node.id": str(node)},
            )
            for node in range(1, BROKERS + 1)
        }
        self._admin: AdminClient | None = None

    def __enter__(self) -> Self:
        try:
            self.start(self.brokers)
        except BaseException:
            self.close()
            raise
        # By default it asks a dead controller for minutes.
        refreshed = {"topic.metadata.refresh.interval.ms": 1000, "log_level": 0}
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, **refreshed})
        # Until then it drops those that it learns to be no brokers of the cluster, with what they are asked.
        wait_until(self._all_known, what="a cluster of all its brokers")
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.close()

    def close(self) -> None:
        """End all brokers and remove their data. May be called again."""
        self._admin = None
        for broker in self.brokers.values():
            broker.kill()
            shutil.rmtree(broker.directory, ignore_errors=True)
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    @property
    def admin(self) -> AdminClient:
        """A client of the whole cluster."""
        assert self._admin is not None, "the cluster isn't running"
        return self._admin

    def _all_known(self) -> bool:
        try:
            return len(self.admin.list_topics(timeout=5).brokers) == BROKERS
        except KafkaException:
            return False

    def start(self, nodes: Iterable[int]) -> None:
        """Start brokers, all at once, and wait until they serve."""
        with ThreadPoolExecutor(BROKERS, thread_name_prefix="cluster") as pool:
            for started in [pool.submit(self.brokers[node].start) for node in nodes]:
                started.result()

    def states(self, topic: str) -> dict[int, PartitionState] | None:
        """Return each partition's state; None while the cluster doesn't answer."""
        try:
            told = self.admin.list_topics(topic, timeout=5).topics[topic]
        except KafkaException:
            return None
        return {
            number: PartitionState(each.leader if each.leader >= 0 else None, frozenset(each.isrs))
            for number, each in told.partitions.items()
        }

    def leaders(self, topic: str) -> dict[int, int | None]:
        """Return who leads each partition; empty while the cluster doesn't answer."""
        return {partition: state.leader for partition, state in (self.states(topic) or {}).items()}

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
        states = self.states(topic)
        return bool(states) and all(len(state.in_sync) == BROKERS for state in (states or {}).values())

    def _elect(self, topic: str) -> bool:
        asked = [TopicPartition(topic, partition) for partition in self.states(topic) or {}]
        if not asked:
            return False
        answers: dict[TopicPartition, KafkaError | None]
        # Without its timeouts: the client's binding can't parse them.
        answers = self.admin.elect_leaders(ElectionType.PREFERRED, asked).result(30)
        return all(_elected(error) for error in answers.values())


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
    def __init__(
        self, directory: Path, ports: tuple[int, int], quorum: _Quorum, properties: Mapping[str, str], **further: Any
    ) -> None:
        joined = {**properties, "controller.quorum.bootstrap.servers": quorum.addresses}
        super().__init__(
            directory, ports, properties=joined, cluster_id=quorum.cluster_id, heap="256m", temporary=True, **further
        )
        self._quorum = quorum

    def _first_voters(self) -> str:
        return f"--initial-controllers={self._quorum.voters}"


def _knows(asked: AdminClient, topic: str) -> bool:
    try:
        return asked.list_topics(timeout=5).topics[topic].error is None
    except (KafkaException, KeyError):
        return False


def _elected(error: KafkaError | None) -> bool:
    return error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED


def _random_id() -> str:
    """Return 16 random bytes as Kafka writes ids; one that begins with a dash would be taken for an option."""
    while (identifier := urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        continue
    return identifier
