"""Whether this process has taken its place in the group, be it one without partitions."""

from __future__ import annotations

import logging

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from wait_registry.errors import PermanentError
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings

log = logging.getLogger(__name__)


class Membership:
    """Shared by the consumer, which knows when partitions are assigned, and the watch, which can ask the broker.

    The classic protocols tell a member that it gets no partitions; under KIP-848 nothing is said, so that surplus
    processes would never become ready: the broker is asked.

    Args:
        settings: group and protocol.
    """

    def __init__(self, settings: ProcessorSettings) -> None:
        self._group = settings.group
        self._is_told = settings.group_protocol is GroupProtocol.CLASSIC
        self.joined = False
        # Under KIP-848 the consumer's for all its life.
        self.member_id = ""

    @property
    def must_ask(self) -> bool:
        """Whether only the broker can tell."""
        return bool(self.member_id) and not (self.joined or self._is_told)

    def ask(self, admin: AdminClient) -> None:
        """Ask the broker whether the group is settled and this member has no partitions.

        Raises:
            TransientError: the broker doesn't answer now.
            ConfigurationError: it refuses us.
        """
        futures = admin.describe_consumer_groups([self._group], request_timeout=timeout_of(admin))
        try:
            described = answer(admin, futures[self._group], f"describing group {self._group}")
        except PermanentError as error:
            log.debug("%s", error)  # brokers answer so while the group isn't there yet
            return
        partitions = {member.member_id: len(member.assignment.topic_partitions) for member in described.members}
        if described.state is ConsumerGroupState.STABLE and partitions.get(self.member_id) == 0:
            self.joined = True
