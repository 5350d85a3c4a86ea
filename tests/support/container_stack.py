"""A broker and a Postgres in containers of the official images, by testcontainers."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.waiting import wait_until
from waitreg.local.broker import PROPERTIES
from waitreg.local.ports import LOOPBACK, free_ports
from waitreg.local.postgres import DATABASE, SETTINGS, USER

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

KAFKA_IMAGE = "apache/kafka:4.2.0"
POSTGRES_IMAGE = "postgres:16"

KAFKA_PORT, CONTROLLER_PORT, INNER_PORT, POSTGRES_PORT = 9092, 9093, 9094, 5432
SERVING_S = 120.0
STOP_S = 60
LOG_LINES = 40


class ContainerServer(ABC):
    """One server in a container; it is removed with its data by `remove`, not by `stop` or `kill`.

    Its port on the host is fixed beforehand: the broker has to advertise it, and it must stay the same over a restart.
    """

    def __init__(self, image: str, port_inside: int) -> None:
        self.host, bind_to = _host()
        self.port = free_ports(1)[0]
        self._container = _container(image, {port_inside: (bind_to, self.port)})
        self._created = False

    @property
    def running(self) -> bool:
        """Whether the container is there (it may be paused)."""
        if not self._created:
            return False
        self._container.reload()
        return self._container.status in ("running", "paused")

    def start(self) -> None:
        """Start it and wait until it serves; nothing happens when it runs."""
        if self.running:
            return
        if self._created:
            self._container.get_wrapped_container().start()
        else:
            self._configure(self._container)
            self._container.start()
            self._created = True
        self._wait_until_serving()

    def stop(self) -> None:
        self._container.get_wrapped_container().stop(timeout=STOP_S)

    def kill(self) -> None:
        """Crash it (SIGKILL)."""
        self._container.get_wrapped_container().kill()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Let it continue after `pause`; nothing happens when it isn't paused."""
        self._container.reload()
        if self._container.status == "paused":
            self._container.get_wrapped_container().unpause()

    def remove(self) -> None:
        """End it and remove it with its data; may be called whatever has happened to it."""
        self._container.stop()

    @abstractmethod
    def _configure(self, container: DockerContainer) -> None:
        """Say what runs in it."""

    @abstractmethod
    def _serving(self) -> bool:
        """Return whether clients are served."""

    def _wait_until_serving(self) -> None:
        def serving() -> bool:
            assert self.running, f"{self._container.image} ended while starting"
            return self._serving()

        try:
            wait_until(serving, SERVING_S, f"{self._container.image} serving clients")
        except AssertionError as error:
            log = self._container.get_wrapped_container().logs(tail=LOG_LINES).decode(errors="replace")
            raise AssertionError(f"{error}\n{log}") from None


class KafkaContainer(ContainerServer):
    """The broker of the embedded stack, with the same properties, from the official image."""

    def __init__(self) -> None:
        super().__init__(KAFKA_IMAGE, KAFKA_PORT)

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    def _configure(self, container: DockerContainer) -> None:
        properties = {
            **PROPERTIES,
            "listeners": f"PLAINTEXT://:{KAFKA_PORT},INNER://localhost:{INNER_PORT},CONTROLLER://localhost:{CONTROLLER_PORT}",
            # The port on the host isn't there inside, where the broker calls itself, in transactions for example.
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.port},INNER://localhost:{INNER_PORT}",
            "inter.broker.listener.name": "INNER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@localhost:{CONTROLLER_PORT}",
        }
        for name, value in properties.items():
            # As the image asks for it: a dot is an underscore.
            container.with_env(f"KAFKA_{name.replace('.', '_').upper()}", value)
        container.with_env("KAFKA_HEAP_OPTS", "-Xmx512m")

    def _serving(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            return False


class PostgresContainer(ContainerServer):
    """The Postgres of the embedded stack, with the same settings, from the official image."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(POSTGRES_IMAGE, POSTGRES_PORT)
        self._settings = {**SETTINGS, **settings}

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@{self.host}:{self.port}/{DATABASE}"

    def _configure(self, container: DockerContainer) -> None:
        container.with_env("POSTGRES_HOST_AUTH_METHOD", "trust")
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        container.with_command(["postgres", *options])

    def _serving(self) -> bool:
        # While it initialises, the image's server listens inside of the container only.
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


class ContainerStack:
    """A real broker and a real Postgres in containers, as a context manager; they are removed at its end."""

    def __init__(self, postgres_settings: Mapping[str, str]) -> None:
        self.broker = KafkaContainer()
        self.postgres = PostgresContainer(postgres_settings)

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    @property
    def postgres_url(self) -> str:
        return self.postgres.url

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor(2, thread_name_prefix="containers") as pool:
                for start in [pool.submit(server.start) for server in (self.broker, self.postgres)]:
                    start.result()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.ExitStack() as both:
            both.callback(self.postgres.remove)
            both.callback(self.broker.remove)


def engine_problem() -> str | None:
    """Return why no containers can be started here; None when a Docker engine answers."""
    import docker

    try:
        client = docker.from_env(timeout=10)
        try:
            client.ping()
        finally:
            client.close()
    except (docker.errors.DockerException, OSError) as error:
        return f"no Docker engine answers: {error}"
    return None


def _container(image: str, ports: dict[int, tuple[str, int]]) -> DockerContainer:
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(image, shm_size="256m")  # parallel queries share memory there; 64 MB by default
    # `with_bind_ports` can't say on which address.
    ports_of_it: dict[str, Any] = container.ports
    ports_of_it.update({str(inside): outside for inside, outside in ports.items()})
    return container


def _host() -> tuple[str, str]:
    """Return the engine's host as clients name it, and the address that ports are bound to there."""
    from testcontainers.core.docker_client import DockerClient

    client = DockerClient()
    try:
        host = client.host()
    finally:
        client.client.close()
    return (LOOPBACK, LOOPBACK) if host in ("localhost", LOOPBACK) else (host, "0.0.0.0")
