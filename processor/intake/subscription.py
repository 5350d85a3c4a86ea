"""Which topics are consumed, and what belongs to each of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wait_registry.records.dead_letter import dead_letter_topic
from wait_registry.records.topics import is_topic_name, redelivery_topic, retry_delay_s, retry_topic
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.settings.processor import ExpiryPolicy, RedeliverTo
from wait_registry.settings.tree import Settings


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    """A consumed topic.

    Args:
        name: of the topic.
        input_topic: to which a retry or redelivery topic belongs; else the same.
        dead_letter_topic: for its records that can't be processed.
        encoder: of their wait records.
        retry_topics: for its records that are handled again later, by their delay in s.
        delay_s: how long its records wait until they are due, s.
        redelivered_to_origin: whether the lineage of records in the input topic counts.
        optional: whether the group consumes its other topics while this one is missing.
    """

    name: str
    input_topic: str
    dead_letter_topic: str
    encoder: WaitRecordEncoder
    retry_topics: Mapping[int, str]
    delay_s: float = 0
    redelivered_to_origin: bool = False
    optional: bool = False

    @property
    def own(self) -> bool:
        """Whether it is a retry or redelivery topic."""
        return self.name != self.input_topic

    @property
    def retries(self) -> bool:
        """Whether it is a retry topic."""
        return self.delay_s > 0 and self.own


def _encoder(settings: Settings, instance: str, dead_letters: str) -> WaitRecordEncoder:
    processor = settings.processor
    return WaitRecordEncoder(
        processor.group,
        instance,
        dead_letters,
        ExpiryRule(processor.expiry_policy.value, processor.max_deliveries, processor.redeliver_to.value),
        settings.wait.max_message_bytes,
    )


def subscription(settings: Settings, instance: str, existing: Collection[str]) -> dict[str, SubscribedTopic]:
    """Derive the consumed topics: the inputs and the group's redelivery and retry topics.

    A redelivery topic is consumed whatever the settings say: operators redrive dead letters through it, and the sweeper
    goes by the policy in the registration, which may be one from before the policy was changed. A retry topic is
    consumed as long as it exists, since records may be in one whose step was removed.

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
        encoder = _encoder(settings, instance, dead_letters)
        retry_topics = {delay_s: retry_topic(topic, processor.group, delay_s) for delay_s in processor.retry.delays_s}
        shared = (topic, dead_letters, encoder, retry_topics)
        subscribed[topic] = SubscribedTopic(
            topic, *shared, processor.delay_s, processor.redeliver_to is RedeliverTo.ORIGIN
        )
        again = redelivery_topic(topic, processor.group)
        if is_topic_name(again):
            optional = processor.expiry_policy is not ExpiryPolicy.REDELIVER
            subscribed[again] = SubscribedTopic(again, *shared, optional=optional)
        for name in {*retry_topics.values(), *existing}:
            if delay_s := retry_delay_s(name, topic, processor.group):
                subscribed[name] = SubscribedTopic(name, *shared, delay_s)
    return subscribed
