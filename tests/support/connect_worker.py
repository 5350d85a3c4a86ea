"""An embedded Kafka Connect worker: a real distributed one, alone in its group, with this project's plugin."""

from __future__ import annotations

import http
from collections.abc import Mapping, Sequence
from pathlib import Path

from wait_registry.errors import ConfigurationError
from wait_registry.java.jars import CONNECT_JAR_KINDS, jar_directory
from waitreg.local.ports import LOOPBACK
from waitreg.local.server import JvmServer, http_get

PROVIDERS = "org.apache.kafka.common.config.provider"
# One worker on a laptop: topics of one replica, and a killed member is given up after seconds, since members are killed
# on purpose here. connect-configs/README.md lists what a connector of this project needs of any worker.
PROPERTIES: Mapping[str, str] = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "4",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "2",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "1000",
    "task.shutdown.graceful.timeout.ms": "10000",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "plugin.discovery": "service_load",
    "connector.client.config.override.policy": "All",
    "exactly.once.source.support": "enabled",
    "config.providers": "env,file,dir",
    "config.providers.env.class": f"{PROVIDERS}.EnvVarConfigProvider",
    "config.providers.file.class": f"{PROVIDERS}.FileConfigProvider",
    "config.providers.dir.class": f"{PROVIDERS}.DirectoryConfigProvider",
}


class ConnectWorker(JvmServer):
    """One Kafka Connect worker on loopback; its connectors and offsets are in Kafka and survive its folder."""

    name = "embedded Kafka Connect worker"
    jars = "connect"
    main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
    jvm_options = ("-XX:+UseSerialGC",)
    start_timeout_s = 120.0

    def __init__(
        self,
        directory: Path,
        port: int,
        properties: Mapping[str, str],
        *,
        plugins: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        temporary: bool = False,
    ) -> None:
        """Describe a worker that isn't started yet.

        Args:
            directory: its folder.
            port: of the REST API.
            properties: bootstrap.servers, and further worker properties, which win over ours. They may hold secrets.
                ``group.id`` names its group and its three topics (``<group>-configs``, ``-offsets``, ``-status``).
            plugins: jars or folders of jars, in addition to Debezium's; `plugin_jar` finds this project's.
            environment: variables for it; ``${env:NAME}`` in a connector's configuration reads them.
            temporary: see `EmbeddedServer`.
        """
        super().__init__(directory, properties, temporary=temporary)
        self.port = port
        self.group = properties.get("group.id", "waitreg-connect")
        self._plugins = tuple(plugins)
        self.environment = dict(environment or {})

    @property
    def url(self) -> str:
        """The address of the REST API."""
        return f"http://{LOOPBACK}:{self.port}"

    def _prepare(self) -> None:
        super()._prepare()
        links = self.directory / "plugins"
        links.mkdir(exist_ok=True)
        debezium = [jar_directory(kind) for kind in CONNECT_JAR_KINDS if kind != self.jars]
        for plugin in (*debezium, *self._plugins):
            link = links / plugin.name
            link.unlink(missing_ok=True)
            link.symlink_to(plugin.absolute())

    def _properties(self) -> Mapping[str, str]:
        return {
            **PROPERTIES,
            "group.id": self.group,
            "config.storage.topic": f"{self.group}-configs",
            "offset.storage.topic": f"{self.group}-offsets",
            "status.storage.topic": f"{self.group}-status",
            "listeners": self.url,
            "plugin.path": str(self.directory / "plugins"),  # with a link to each plugin
        }

    def _serving(self) -> bool:
        """Ask GET /health (KIP-1017): 200 once the worker has joined its group and read its topics."""
        return http_get(self.port, "/health")[0] == http.HTTPStatus.OK


def plugin_jar(checkout: Path) -> Path:
    """Return this project's plugin as Maven has built it in a checkout.

    Raises:
        ConfigurationError: it isn't built, or more than one version lies there.
    """
    target = checkout / "connect-configs" / "plugin" / "target"
    found = [jar for jar in target.glob("waitreg-connect-*.jar") if not jar.stem.endswith(("-sources", "-javadoc"))]
    if len(found) != 1:
        raise ConfigurationError(f"{len(found)} jars waitreg-connect-*.jar in {target}, expected one: `make connect`")
    return found[0]
