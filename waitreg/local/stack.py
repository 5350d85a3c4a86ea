"""The embedded stack: one Kafka broker and one Postgres with a data folder and free ports."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topics import create_topics
from wait_registry.postgres.connection import connect
from wait_registry.postgres.schema import migrate_schema
from wait_registry.settings.tree import Settings
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import free_ports, is_free
from waitreg.local.postgres import EmbeddedPostgres

PORTS_FILE = "ports.json"
# The broker has two, Postgres has one.
PORTS = 3


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
    ) -> None:
        """Describe a stack that isn't started yet.

        Args:
            data_dir: folder to keep the data in; a temporary one when None.
            broker_properties: further broker properties; they win over the defaults.
            postgres_settings: further Postgres settings; they win over the defaults.
        """
        self._given_dir = data_dir
        self._broker_properties = broker_properties
        self._postgres_settings = postgres_settings
        self._started = ExitStack()
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

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def temporary(self) -> bool:
        """Whether the stack removes its data at the end."""
        return self._given_dir is None

    def start(self) -> None:
        """Start both servers and wait until they serve.

        Raises:
            ConfigurationError: no Java, changed jars, or a data folder in use.
            ServerError: a server did not start.
        """
        with ExitStack() as started:
            self.data_dir = self._take_data_dir(started)
            client, controller, postgres = self._ports()
            self.broker = EmbeddedBroker(
                self.data_dir / "broker",
                (client, controller),
                properties=self._broker_properties,
                temporary=self.temporary,
            )
            self.postgres = EmbeddedPostgres(
                self.data_dir / "postgres", postgres, settings=self._postgres_settings, temporary=self.temporary
            )
            for server in (self.broker, self.postgres):
                started.callback(server.kill if self.temporary else server.stop)
                server.start()
            self._started = started.pop_all()

    def close(self) -> None:
        """End both servers; a temporary stack removes its data. May be called again."""
        self._started.close()

    def _take_data_dir(self, started: ExitStack) -> Path:
        if self._given_dir is None:
            temporary = Path(tempfile.mkdtemp(prefix="waitreg-"))
            started.callback(shutil.rmtree, temporary, ignore_errors=True)
            temporary.chmod(0o755)  # as root, Postgres runs under another account
            _keep_from_cleaning(temporary, started)
            return temporary
        data_dir = self._given_dir.expanduser().absolute()
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            lock = started.enter_context((data_dir / "lock").open("w"))
        except OSError as error:
            raise ConfigurationError(
                f"--data-dir: can't write to {error.filename}: {error.strerror}. Name a folder that this user may "
                "create and write to"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                f"another stack is running on {data_dir}: end it, or choose another folder"
            ) from None
        return data_dir

    def _ports(self) -> tuple[int, ...]:
        """Return the ports of the last start in this data folder if all of them are free, else new ones."""
        record = self.data_dir / PORTS_FILE
        ports: tuple[int, ...] = tuple(json.loads(record.read_text("ascii"))) if record.exists() else ()
        if len(ports) != PORTS or not all(map(is_free, ports)):
            ports = free_ports(PORTS)
            if not self.temporary:  # the guards remove their own folders and then this one, if it is empty
                record.write_text(json.dumps(ports), "ascii")
        return ports


def install(settings: Settings) -> None:
    """Create the topics and the schema of these settings."""
    create_topics(settings)
    with connect(settings.postgres, autocommit=True, application_name="waitreg stack") as connection:
        migrate_schema(connection)


def _keep_from_cleaning(folder: Path, started: ExitStack) -> None:
    """Lock a folder: systemd-tmpfiles removes no file below a locked one (systemd.io/TEMPORARY_DIRECTORIES)."""
    held = os.open(folder, os.O_RDONLY)
    started.callback(os.close, held)
    fcntl.flock(held, fcntl.LOCK_SH)
