"""One group with topics of its own: its settings, what the test publishes, and what is in the topics afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.integration.processor.running import Processors, RunningProcessor
from tests.integration.processor.wait_topic import Story, stories
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.naming import Names
from tests.support.settings import changed, settings_against, with_broker
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from wait_registry.handler import Record
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.tracing import Tracer

PROTOCOLS: dict[str, dict[str, Any]] = {
    "cooperative": {"assignment_strategy": "cooperative-sticky"},
    "eager": {"assignment_strategy": "range"},
    "KIP-848": {"group_protocol": "consumer"},
}


class Counts:
    """A handler whose calls each take a while, and are counted by partition and offset."""

    def __init__(self, call_s: float = 0) -> None:
        self.calls: Counter[tuple[int, int]] = Counter()
        self._call_s = call_s

    async def __call__(self, record: Record) -> None:
        """Count the call."""
        self.calls[record.partition, record.offset] += 1
        await asyncio.sleep(self._call_s)


class Gate:
    """A handler that lets ``free`` records pass and holds the others until it is opened."""

    def __init__(self, free: int = 0) -> None:
        self.calls: Counter[tuple[int, int]] = Counter()
        self.opened = threading.Event()
        self._free = free

    async def __call__(self, record: Record) -> None:
        """Count the call, and return when it may."""
        self.calls[record.partition, record.offset] += 1
        if sum(self.calls.values()) > self._free:
            while not self.opened.is_set():  # noqa: ASYNC110 - opened by another thread
                await asyncio.sleep(0.01)


async def accepts(record: Record) -> None:
    """Be done with everything at once."""


def numbers(count: int) -> list[bytes]:
    """Return values that differ."""
    return [b"%d" % number for number in range(count)]


@dataclass(frozen=True)
class ProcessorScenario:
    """A group that reads one input topic."""

    settings: Settings
    topics: Topics
    processors: Processors
    partitions: int

    @property
    def topic(self) -> str:
        """The input topic."""
        return self.settings.processor.topics[0]

    @property
    def group(self) -> str:
        """The group's name."""
        return self.settings.processor.group

    @property
    def again(self) -> str:
        """The group's redelivery topic."""
        return redelivery_topic(self.topic, self.group)

    def of_the_input_alone(self) -> ProcessorScenario:
        """Delete the redelivery topic, so that the input's partitions are all that the group assigns."""
        self.topics.delete(self.again)
        return self

    def changed(self, section: str, **values: Any) -> ProcessorScenario:
        """Return the scenario with other values in one section of the settings."""
        return replace(self, settings=changed(self.settings, section, **values))

    def produce(self, records: Sequence[Outgoing | bytes]) -> None:
        """Publish to the input topic."""
        self.topics.produce(self.topic, list(records))

    def produce_to_each(self, count: int) -> int:
        """Publish ``count`` records to each partition and return how many these are in all."""
        self.produce([Outgoing(b"value", partition=n % self.partitions) for n in range(count * self.partitions)])
        return count * self.partitions

    def start(self, broker: str | None = None, once: bool = False) -> RunningProcessor:
        """Start a processor, by another address of the broker if there is one."""
        return self.processors.start(with_broker(self.settings, broker) if broker else self.settings, once)

    def run_once(self, tracer: Tracer | None = None) -> RunningProcessor:
        """Work off what is in the topics now."""
        return self.processors.run_once(self.settings, tracer=tracer)

    def committed(self) -> list[int]:
        """Return the group's offsets by partition, -1 where there is none."""
        return committed(self.topics.bootstrap, self.group, self.topic, self.partitions)

    def stories(self) -> dict[tuple[str, int, int], Story]:
        """Return the entries of each record in the wait topic, by its origin."""
        return stories(self.topics.read(self.settings.wait.topic))

    def by_offset(self) -> dict[int, Story]:
        """Return the same of an input topic with one partition, by offset."""
        return {offset: story for (_, _, offset), story in self.stories().items()}

    def resolved_stories(self, count: int) -> list[Story]:
        """Check that ``count`` records are registered and every one is resolved; return their stories."""
        found = list(self.stories().values())
        assert len(found) == count
        assert all(story.resolved for story in found)
        return found

    def letters(self) -> list[ReadRecord]:
        """Return the dead letters."""
        return self.topics.read(self.settings.dead_letter.topic)


@dataclass(frozen=True)
class ScenarioFactory:
    """Makes scenarios whose topics exist."""

    make_settings: Callable[..., Settings]
    topics: Topics
    processors: Processors

    def __call__(
        self,
        handler: Any = accepts,
        partitions: int = 3,
        others: Mapping[str, Any] | None = None,
        topic_config: Mapping[str, str] | None = None,
        **own: Any,
    ) -> ProcessorScenario:
        """Make one.

        Args:
            handler: called in this process, or the name of one that a process imports.
            partitions: of the input topic.
            others: settings outside the section ``processor``, by dotted name.
            topic_config: the input topic's configuration, dots written as double underscores.
            own: settings of the section ``processor``.
        """
        name = handler if isinstance(handler, str) else self.processors.handler(handler)
        section = {f"processor.{key}": value for key, value in {"handler": name, **own}.items()}
        settings = self.make_settings({**section, **(others or {})}, partitions, **(topic_config or {}))
        return ProcessorScenario(settings, self.topics, self.processors, partitions)


def scenarios_on(stack: OwnStack, names: Names, processors: Processors) -> ScenarioFactory:
    """Return a factory of scenarios on a broker that one test has for itself; the broker keeps the topics."""
    topics = Topics(stack.bootstrap_servers)

    def make(overrides: Mapping[str, Any], partitions: int) -> Settings:
        settings = settings_against(stack.bootstrap_servers, stack.postgres_url, names, overrides)
        topics.create_own(settings, partitions)
        return settings

    return ScenarioFactory(make, topics, processors)
