"""What a strategy is: the way in which records travel from the consumer to the handler and offsets are committed.

To add one, add a file to this folder with a function ``build(context) -> Strategy``; its name is the file's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from confluent_kafka import Producer

from processor.attempts import Attempts
from processor.broker_link import BrokerLink
from processor.deadline import Watchdog
from processor.expiry import TimeLimits
from processor.fault import Fault
from processor.membership import Membership
from processor.once import Once
from processor.outbox import Outbox
from processor.start_offsets import StartOffsets
from processor.stats import Stats
from processor.subscription import SubscribedTopic
from wait_registry.clock import Clock
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.tracing import Tracer


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """What every strategy is built of; one per process, made on the event loop's thread, start checks done.

    ``stop`` is set when the process is to end: stop consuming, drain, return. ``once`` is None, or for ``--once``
    what tells when all that stood in the topics at the start is consumed: return when it has been worked off.
    ``commit_metadata`` goes into every commit, by topic. ``tracer`` is None unless tracing is on.
    """

    settings: Settings
    instance: str
    cluster_id: str
    commit_metadata: Mapping[str, str]
    topics: dict[str, SubscribedTopic]
    limits: TimeLimits
    producer: Producer
    outbox: Outbox
    attempts: Attempts
    watchdog: Watchdog
    start_offsets: StartOffsets
    link: BrokerLink
    membership: Membership
    clock: Clock
    fault: Fault
    stats: Stats
    stop: Event
    once: Once | None
    tracer: Tracer | None = None

    def blocked(self) -> int:
        """Return how many calls are over their limit and go on all the same: each is one of N; from any thread."""
        slots = self.attempts.slots
        return self.watchdog.blocked() if slots is None else slots.blocked


class Strategy(Protocol):
    """Runs on the event loop; everything it does is bounded (P7), and it commits nothing that could get lost (P1)."""

    async def run(self) -> None:
        """Consume until ``stop`` is set, or the ends are reached; then drain and leave the group.

        Raises:
            WaitRegistryError: it can't go on; the process ends with that error's status.
        """

    def not_ready(self) -> list[str]:
        """Return why it doesn't do its work now, as people read it (called in the telemetry's thread)."""

    def readings(self) -> Iterable[Reading]:
        """Return its gauges (called in the telemetry's thread)."""


Build = Callable[[StrategyContext], Strategy]
