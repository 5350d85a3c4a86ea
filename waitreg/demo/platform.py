"""The demo's broker, Postgres, topics and schema, its services, and their settings."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import SecretStr

from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.runtime import LogFormat, LogSettings, TelemetrySettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings
from wait_registry.settings.tree import Settings
from waitreg.demo.plan import DemoPlan
from waitreg.local.background import Background, Endpoint, console_background
from waitreg.local.environment import PREFIX, as_environment
from waitreg.local.ports import free_ports
from waitreg.local.stack import EmbeddedStack, install

SCHEMA = "public"
INPUT_PARTITIONS = 4
# The shortest that a broker allows by default: it misses a killed member of a group after 6 s instead of 45.
SESSION_TIMEOUT_MS = 6000


class _Baseline(Background):
    module = "waitreg.demo.baseline"


class Platform:
    """A running stack with topics and schema; the processes that it starts are not ready yet."""

    def __init__(self, stack: EmbeddedStack, directory: Path, plan: DemoPlan) -> None:
        """Take the folder for logs and scratch files."""
        self.stack = stack
        self.directory = directory
        self.plan = plan
        self._started: list[Background] = []
        self.settings = self.settings_of(ProcessorSettings())

    def settings_of(self, processor: ProcessorSettings) -> Settings:
        """Return the settings of all services with this processor section, and nothing else of this host."""
        return Settings(
            kafka=KafkaSettings(
                bootstrap_servers=self.stack.bootstrap_servers,
                librdkafka={"session.timeout.ms": SESSION_TIMEOUT_MS},
            ),
            wait=WaitTopicSettings(
                partitions=4, replication_factor=1, min_insync_replicas=1, skew_allowance_s=self.plan.skew_allowance_s
            ),
            dead_letter=DeadLetterSettings(partitions=2),
            postgres=PostgresSettings(url=SecretStr(self.stack.postgres_url), schema=SCHEMA),
            processor=processor,
            sweeper=SweeperSettings(interval_s=self.plan.sweep_interval_s),
            telemetry=TelemetrySettings(port=0),
            log=LogSettings(format=LogFormat.CONSOLE),
        )

    def service(self, command: str, settings: Settings, name: str = "") -> Background:
        """Start processor, sink or sweeper."""
        (port,) = free_ports(1)
        variables = {**as_environment(settings), f"{PREFIX}TELEMETRY__PORT": str(port)}
        ready = Endpoint(port, "/health/ready")
        return self._launched(Background(name or command, self.directory, [command], variables, ready))

    def console(self) -> Background:
        """Start the console."""
        return self._launched(console_background(self.settings, self.directory, free_ports(1)[0]))

    def baseline(self, name: str, settings: Settings) -> Background:
        """Start `waitreg.demo.baseline`, which has no HTTP port."""
        return self._launched(_Baseline(name, self.directory, [], as_environment(settings), Endpoint(0, "")))

    def downstream(self, mixture: str, calls: Path, name: str) -> Background:
        """Start a downstream of its own counter."""
        (port,) = free_ports(1)
        arguments = ["downstream", "--port", str(port), "--mixture", mixture, "--log", str(calls)]
        return self._launched(Background(name, self.directory, arguments, {}, Endpoint(port, "/stats")))

    def _launched(self, background: Background) -> Background:
        background.launch()
        self._started.append(background)
        return background

    def close(self) -> None:
        """End what was started, gracefully if there is time: services remove their scratch files then."""
        with ThreadPoolExecutor(max(1, len(self._started))) as pool:
            for background in self._started:
                pool.submit(background.stop)


@contextmanager
def running_platform(directory: Path, plan: DemoPlan) -> Iterator[Platform]:
    """Run a stack with wait topic, dead letter topic and schema; logs and scratch files go into the folder."""
    with EmbeddedStack() as stack, closing(Platform(stack, directory, plan)) as platform:
        install(platform.settings)
        yield platform
