"""Asks the broker from time to time: is it back, are the topics the same, is this process a member of its group."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from confluent_kafka.admin import AdminClient

from processor.fault import Fault
from processor.health.broker_connection import BrokerConnection
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.membership import Membership
from processor.intake.stop_at_ends import Once
from wait_registry.clock import Clock
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


class BrokerWatch:
    """Asks in a thread, so that neither the event loop nor a rebalance waits for the broker.

    Args:
        admin: the client that asks.
        wait_topic: identity of the wait topic at the start; a change ends the process.
        consumed: identities of the consumed topics at the start.
        membership: gets the coordinator's description of the group, under the protocols that need it.
        once: gets the description too, with ``--once``.
        describe: returns the coordinator's description.
    """

    def __init__(
        self,
        admin: AdminClient,
        wait_topic: TopicIdentity,
        consumed: ConsumedTopics,
        membership: Membership,
        once: Once | None,
        describe: Callable[[], GroupDescription],
        connection: BrokerConnection,
        clock: Clock,
        fault: Fault,
    ) -> None:
        self._admin = admin
        self._wait_topic = wait_topic
        self._consumed = consumed
        self._membership = membership
        self._once = once
        self._describe = describe
        self._connection = connection
        self._clock = clock
        self._fault = fault
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="broker-watch")
        self._began_s = self._checked_s = self._compared_s = clock.monotonic()
        self._log_at_s = LOG_WAITING_S

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                await asyncio.sleep(PROBE_EVERY_S)
                await self.run_once()
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def run_once(self) -> None:
        """Ask what is due now; a broker that doesn't answer isn't an error."""
        if not self._connection.up and await self._ask(lambda: cluster_id(self._admin)) is not None:
            self._connection.answered()
        await self.look_at_the_group()
        await self.log_waiting()
        if self._connection.up and self._clock.monotonic() - self._checked_s >= IDENTITY_EVERY_S:
            self._checked_s = self._clock.monotonic()
            if recreated := await self._ask(self._check_identity):
                self._membership.join_again(f"{', '.join(recreated)} was recreated")

    async def look_at_the_group(self) -> None:
        """Ask the coordinator as often as needed, where librdkafka's events aren't enough."""
        membership, once, now_s = self._membership, self._once, self._clock.monotonic()
        compares = membership.must_ask and now_s - self._compared_s >= COMPARE_EVERY_S
        if not self._connection.up or now_s - self._compared_s > 2 * COMPARE_EVERY_S:
            membership.forget_looks()
        if not (self._connection.up and membership.member_id and (compares or self._asks())):
            return
        if compares:
            self._compared_s = now_s
        group = await self._ask(self._describe, self._group_refused)
        if group is None:
            membership.forget_looks()
            return
        if membership.must_ask:
            membership.described(group)
        if compares:
            membership.compare(group)
        if once is not None and membership.joined:
            await self._ask(lambda: once.judge(self._admin, group, membership.member_id))

    def _asks(self) -> bool:
        """Return whether the coordinator is asked each time."""
        if self._once is None:
            return self._membership.must_ask and not self._membership.joined
        return self._membership.must_ask or self._once.asks

    def _group_refused(self, error: WaitRegistryError) -> None:
        if self._once is not None or not self._membership.joined:
            self._fault.report(error)
        else:  # a member works without the answer
            log.warning("cannot verify this member's assignment: %s", error)

    async def log_waiting(self) -> None:
        """Log why a processor that has just started does nothing yet, with growing pauses."""
        waited_s = self._clock.monotonic() - self._began_s
        if self._membership.joined:
            self._log_at_s = math.inf  # partitions that are lost again are logged elsewhere
        if not self._connection.up or waited_s < self._log_at_s:
            return
        self._log_at_s = waited_s + min(2 * waited_s, LOG_WAITING_MOST_S)
        refusals: list[WaitRegistryError] = []
        group = await self._ask(self._describe, refusals.append)
        missing = str(refusals[0]) if refusals else self._membership.missing(group)
        level = logging.WARNING if waited_s >= WAITS_TOO_LONG_S else logging.INFO
        log.log(level, "no partitions for %.0f s: %s", waited_s, missing)

    def _check_identity(self) -> list[str]:
        require_same_wait_topic(self._admin, self._wait_topic)
        return self._consumed.recreated(self._admin)

    async def _ask(
        self, question: Callable[[], T], refused: Callable[[WaitRegistryError], None] | None = None
    ) -> T | None:
        """Return the answer, None when there is none; a refusal ends the process unless ``refused`` takes it."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, question)
        except TransientError as error:
            log.debug("no answer from the broker: %s", error)
        except WaitRegistryError as error:
            (refused or self._fault.report)(error)
        return None
