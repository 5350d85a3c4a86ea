"""Asks the broker from time to time: is it back, are the topics the same, is this process a member of its group."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka.admin import AdminClient

from processor.fault import Fault
from processor.health.broker_connection import BrokerConnection
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.membership import Membership
from processor.intake.stop_at_ends import StopAtEnds
from wait_registry.clock import Clock
from wait_registry.daemon_threads import in_daemon_thread
from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.kafka.cluster import TopicIdentity, cluster_id
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.kafka.wait_topic import require_same_wait_topic

log = logging.getLogger(__name__)

T = TypeVar("T")

PROBE_EVERY_S = 1.0
IDENTITY_EVERY_S = 30.0
# Heartbeats are due every 5 s by default, every 15 s at most: a difference that lasts this long was missed.
COMPARE_EVERY_S = 50.0
LOG_WAITING_S = 5.0
# The pause until the next line is twice as long as the whole wait so far, up to this.
LOG_WAITING_MOST_S = 300.0
# By then, the session of a member that was killed is over (45 s by default).
WAITS_TOO_LONG_S = 60.0


@dataclass(frozen=True, slots=True)
class Questions:
    """What the broker is asked.

    Args:
        admin: the client that asks.
        wait_topic: identity of the wait topic at the start; a change ends the process.
        consumed: identities of the consumed topics at the start.
        describe_group: returns the coordinator's description.
    """

    admin: AdminClient
    wait_topic: TopicIdentity
    consumed: ConsumedTopics
    describe_group: Callable[[], GroupDescription]

    def recreated_topics(self) -> list[str]:
        """Return the group's own topics that were recreated; a change of another one is an error."""
        require_same_wait_topic(self.admin, self.wait_topic)
        return self.consumed.recreated(self.admin)


@dataclass
class BrokerWatch:
    """Asks in a thread, so that neither the event loop nor a rebalance waits for the broker.

    Args:
        questions: what the broker is asked.
        membership: gets the coordinator's description of the group, under the protocols that need it.
        ends: gets the description too, with ``--once``.
    """

    questions: Questions
    membership: Membership
    ends: StopAtEnds | None
    connection: BrokerConnection
    clock: Clock
    fault: Fault

    def __post_init__(self) -> None:
        self._began_s = self._checked_s = self._compared_s = self.clock.monotonic()
        self._log_at_s = LOG_WAITING_S

    async def run_once(self) -> None:
        """Ask what is due now; a broker that doesn't answer isn't an error."""
        if not self.connection.up and await self._ask(lambda: cluster_id(self.questions.admin)) is not None:
            self.connection.answered()
        await self.look_at_the_group()
        await self.log_waiting()
        if self.connection.up and self.clock.monotonic() - self._checked_s >= IDENTITY_EVERY_S:
            self._checked_s = self.clock.monotonic()
            if recreated := await self._ask(self.questions.recreated_topics):
                self.membership.join_again(f"{', '.join(recreated)} was recreated")

    async def look_at_the_group(self) -> None:
        """Ask the coordinator as often as needed, where librdkafka's events aren't enough."""
        membership, ends, now_s = self.membership, self.ends, self.clock.monotonic()
        compares = membership.must_ask and now_s - self._compared_s >= COMPARE_EVERY_S
        if not self.connection.up or now_s - self._compared_s > 2 * COMPARE_EVERY_S:
            membership.forget_looks()
        if not (self.connection.up and membership.member_id and (compares or self._asks())):
            return
        if compares:
            self._compared_s = now_s
        group = await self._ask(self.questions.describe_group, self._group_refused)
        if group is None:
            membership.forget_looks()
            return
        if membership.must_ask:
            membership.described(group)
        if compares:
            membership.compare(group)
        if ends is not None and membership.joined:
            await self._ask(lambda: ends.compare(self.questions.admin, group, membership.member_id))

    def _asks(self) -> bool:
        """Return whether the coordinator is asked each time."""
        if self.ends is None:
            return self.membership.must_ask and not self.membership.joined
        return self.membership.must_ask or self.ends.asks

    def _group_refused(self, error: WaitRegistryError) -> None:
        if self.ends is not None or not self.membership.joined:
            self.fault.report(error)
        else:  # a member works without the answer
            log.warning("cannot verify this member's assignment: %s", error)

    async def log_waiting(self) -> None:
        """Log why a processor that has just started does nothing yet, with growing pauses."""
        waited_s = self.clock.monotonic() - self._began_s
        if self.membership.joined:
            self._log_at_s = math.inf  # partitions that are lost again are logged elsewhere
        if not self.connection.up or waited_s < self._log_at_s:
            return
        self._log_at_s = waited_s + min(2 * waited_s, LOG_WAITING_MOST_S)
        refusals: list[WaitRegistryError] = []
        group = await self._ask(self.questions.describe_group, refusals.append)
        missing = str(refusals[0]) if refusals else self.membership.missing(group)
        level = logging.WARNING if waited_s >= WAITS_TOO_LONG_S else logging.INFO
        log.log(level, "no partitions for %.0f s: %s", waited_s, missing)

    async def _ask(
        self, question: Callable[[], T], refused: Callable[[WaitRegistryError], None] | None = None
    ) -> T | None:
        """Return the answer, None when there is none; a refusal ends the process unless ``refused`` takes it."""
        try:
            return await in_daemon_thread("broker-watch", question)
        except TransientError as error:
            log.debug("no answer from the broker: %s", error)
        except WaitRegistryError as error:
            (refused or self.fault.report)(error)
        return None
