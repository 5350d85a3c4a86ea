"""The embedded stack: one Kafka broker and one Postgres with a data folder and free ports."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from wait_registry.errors import ConfigurationError
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.ports import free_ports, is_free
from wait_registry.local.postgres import EmbeddedPostgres
from wait_registry.local.server import EmbeddedServer, PortTakenError

START_ATTEMPTS = 3
PORTS_FILE = "ports.json"
# The broker has two and Postgres one; the file holds the worker's after them once a worker has run.
SERVER_PORTS = 3


class EmbeddedStack:
    """A real Kafka broker and a real Postgres, as a context manager.

    Without a data folder everything is temporary and removed at the end. With one the data stays, and the next start
    finds it under the same ports when they are free. When this process is killed, the guards end both servers.
    """

    broker: EmbeddedBroker
    postgres: EmbeddedPostgres

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        broker_properties: Mapping[str, str] | None = None,
        postgres_settings: Mapping[str, str] | None = None,
        broker_heap: str = "512m",
        cluster_id: str = "",
    ) -> None:
        """Describe a stack that isn't started yet.

        Args:
            data_dir: folder to keep the data in; a temporary one when None.
            broker_properties: further broker properties; they win over the defaults.
            postgres_settings: further Postgres settings; they win over the defaults.
            broker_heap: the broker JVM's -Xmx.
            cluster_id: of a new Kafka data folder, 16 bytes in URL-safe base64; a random one when empty.
        """
        self._given_dir = data_dir
        self._broker_properties = broker_properties
        self._postgres_settings = postgres_settings
        self._broker_heap = broker_heap
        self._cluster_id = cluster_id
        self._lock_fd: int | None = None
        self._servers: tuple[EmbeddedServer, ...] = ()
        self.data_dir = Path()

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address."""
        return self.broker.bootstrap_servers

    @property
    def postgres_url(self) -> str:
        """The address of Postgres."""
        return self.postgres.url

    @property
    def environment(self) -> dict[str, str]:
        """The two environment variables that point a service here."""
        return {
            "WAITREG_KAFKA__BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "WAITREG_POSTGRES__URL": self.postgres_url,
        }

    def __enter__(self) -> EmbeddedStack:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def temporary(self) -> bool:
        """Whether the stack removes its data at the end."""
        return self._given_dir is None

    def start(self) -> None:
        """Start both servers and wait until they serve.

        Raises:
            ConfigurationError: no Java, changed jars, a data folder in use, or a server that did not start.
        """
        self._take_data_dir()
        try:
            for attempt in range(1, START_ATTEMPTS + 1):
                self._make_servers(self._ports(fresh=attempt > 1))
                try:
                    for server in self._servers:
                        server.start()
                    return
                except PortTakenError:
                    if attempt == START_ATTEMPTS:
                        raise
                    for server in self._servers:
                        server.stop()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End both servers; a temporary stack removes its data. May be called again."""
        for server in self._servers:
            if self.temporary:
                server.kill()
            else:
                server.stop()
        if self.temporary and self.data_dir != Path():
            shutil.rmtree(self.data_dir, ignore_errors=True)
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def worker_port(self) -> int:
        """Return a free port for a Kafka Connect worker of the running stack.

        It is the port of the last start in this data folder if that is free, so that `connect watch` finds the worker.

        Raises:
            ConfigurationError: hardly any port is free.
        """
        known = self._known_ports()
        for port in known[SERVER_PORTS:]:
            if is_free(port):
                return port
        (port,) = free_ports(1)
        self._keep_ports([*known[:SERVER_PORTS], port])
        return port

    def _take_data_dir(self) -> None:
        if self._given_dir is None:
            self.data_dir = Path(tempfile.mkdtemp(prefix="waitreg-"))
            self.data_dir.chmod(0o755)  # as root, Postgres runs under another account
            return
        self.data_dir = self._given_dir.expanduser().absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._lock_fd = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_fd)
            self._lock_fd = None
            raise ConfigurationError(
                f"another stack is running on {self.data_dir}: end it, or choose another folder"
            ) from None

    def _ports(self, *, fresh: bool) -> tuple[int, int, int]:
        """Return the ports of the last start in this data folder if they are free, else new ones."""
        known = self._known_ports()
        servers = known[:SERVER_PORTS]
        if fresh or not servers or not all(map(is_free, servers)):
            servers = [*free_ports(SERVER_PORTS)]
            self._keep_ports([*servers, *known[SERVER_PORTS:]])
        client, controller, postgres = servers
        return client, controller, postgres

    def _known_ports(self) -> list[int]:
        record = self.data_dir / PORTS_FILE
        ports: list[int] = json.loads(record.read_text("ascii")) if record.exists() else []
        return ports

    def _keep_ports(self, ports: Sequence[int]) -> None:
        if self.temporary:
            return  # the guards remove their own folders and then this one, if it is empty
        (self.data_dir / PORTS_FILE).write_text(json.dumps(ports), "ascii")

    def _make_servers(self, ports: tuple[int, int, int]) -> None:
        # The guards hold the lock too: after a kill -9 of this process it is free once the servers have ended.
        held = () if self._lock_fd is None else (self._lock_fd,)
        self.broker = EmbeddedBroker(
            self.data_dir / "broker",
            ports[:2],
            properties=self._broker_properties,
            heap=self._broker_heap,
            cluster_id=self._cluster_id,
            temporary=self.temporary,
            inherited_fds=held,
        )
        self.postgres = EmbeddedPostgres(
            self.data_dir / "postgres",
            ports[2],
            settings=self._postgres_settings,
            temporary=self.temporary,
            inherited_fds=held,
        )
        self._servers = (self.broker, self.postgres)
