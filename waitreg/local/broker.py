"""The embedded Kafka broker: a real one, broker and KRaft controller in one process."""

from __future__ import annotations

import logging
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from waitreg.local.child import log_tail
from waitreg.local.ports import LOOPBACK
from waitreg.local.server import JvmServer

log = logging.getLogger(__name__)

CLIENT_PROBE_S = 1.0
# Sized for one process on a laptop: few internal partitions start fast, a small cleaner buffer fits the small heap.
PROPERTIES: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "8",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # Let clients choose short sessions and learn of rebalances soon: here members are killed on purpose.
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "5000",  # after a crash the broker is taken back only when its old session is over
    "broker.heartbeat.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "log.cleaner.dedupe.buffer.size": "33554432",
    "log.cleaner.backoff.ms": "1000",
    "log.index.size.max.bytes": "1048576",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class EmbeddedBroker(JvmServer):
    """One Kafka broker on loopback."""

    name = "embedded Kafka broker"
    jars = "broker"
    main_class = "kafka.Kafka"

    def __init__(
        self,
        directory: Path,
        ports: tuple[int, int],
        *,
        properties: Mapping[str, str] | None = None,
        cluster_id: str = "",
        temporary: bool = False,
    ) -> None:
        """Describe a broker that isn't started yet.

        Args:
            directory: its folder.
            ports: of clients and of the controller.
            properties: further broker properties; they win over ours, listeners included.
            cluster_id: 16 bytes in URL-safe base64 for a new data folder; a random one when empty.
            temporary: see `EmbeddedServer`.
        """
        super().__init__(directory, properties, temporary=temporary)
        self.ports = ports
        self._cluster_id = cluster_id

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return f"{LOOPBACK}:{self.ports[0]}"

    def _prepare(self) -> None:
        super()._prepare()
        if not (self.directory / "data" / "meta.properties").exists():
            self._format()

    def _properties(self) -> dict[str, str]:
        client_port, controller_port = self.ports
        return {
            **PROPERTIES,
            "listeners": f"PLAINTEXT://{LOOPBACK}:{client_port},CONTROLLER://{LOOPBACK}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{client_port}",
            "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{controller_port}",
            "log.dirs": str(self.directory / "data"),
        }

    def _format(self) -> None:
        """Give the data folder its cluster ID."""
        cluster_id = self._cluster_id or urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # TieredStopAtLevel: the tool runs for a second, compiling it well would take longer.
        call = self._java_call("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        # "=": one ID in 64 begins with a dash, and "-t ID" would take that for an option.
        arguments = ["kafka.tools.StorageTool", "format", self._first_voters(), f"--cluster-id={cluster_id}", "-c"]
        done = subprocess.run(
            [*call, *arguments, str(self.properties_file)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ConfigurationError(
                f"kafka-storage format ended with status {done.returncode} in {self.directory}:\n"
                f"{done.stdout}{done.stderr}{log_tail(self.log)}"
            )

    def _first_voters(self) -> str:
        """Return the option that names the first controllers (KIP-853: a quorum of one that could grow)."""
        return "--standalone"

    def _serving(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.ports[0]), timeout=CLIENT_PROBE_S).close()
        except OSError:
            return False
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        try:
            return bool(client.list_topics(timeout=CLIENT_PROBE_S).brokers)
        except KafkaException as error:
            log.debug("the broker listens and does not answer yet: %s", error)
            return False
