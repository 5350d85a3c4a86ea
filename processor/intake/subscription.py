"""Which topics are consumed, and what belongs to each of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from wait_registry.records.dead_letter import dead_letter_topic
from wait_registry.records.topics import redelivery_topic
from wait_registry.records.wait_record import WaitRecordEncoder
from wait_registry.settings.processor import ExpiryPolicy
from wait_registry.settings.root import Settings


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    """A consumed topic, its input topic (for a redelivery topic, another one), and its dead letter topic."""

    name: str
    input_topic: str
    dead_letter_topic: str
    encoder: WaitRecordEncoder


def subscription(settings: Settings, instance: str, existing: Collection[str]) -> dict[str, SubscribedTopic]:
    """Derive the consumed topics: the inputs and the group's redelivery topics.

    With another policy than ``redeliver`` they are consumed as long as they exist: the sweeper goes by the policy in
    the registration, which may be one from before the policy was changed.

    Args:
        settings: input topics, group, policy, dead letter topic.
        instance: the name of this process in wait records.
        existing: the topics that there are.

    Returns:
        By the name of the consumed topic. The dead letter topic follows from where a record was consumed, never from
        its headers, which any producer may have written.
    """
    processor = settings.processor
    subscribed: dict[str, SubscribedTopic] = {}
    for topic in processor.topics:
        dead_letters = dead_letter_topic(settings.dead_letter.topic, topic, processor.group)
        encoder = WaitRecordEncoder(
            processor.group,
            instance,
            dead_letters,
            processor.expiry_policy.value,
            processor.max_deliveries,
            settings.wait.max_message_bytes,
        )
        subscribed[topic] = SubscribedTopic(topic, topic, dead_letters, encoder)
        again = redelivery_topic(topic, processor.group)
        if processor.expiry_policy is ExpiryPolicy.REDELIVER or again in existing:
            subscribed[again] = SubscribedTopic(again, topic, dead_letters, encoder)
    return subscribed
