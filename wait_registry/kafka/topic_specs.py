"""The topics that the settings name, and the required configuration of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from wait_registry.records.dead_letter import DEAD_LETTER_EXTRA_BYTES, dead_letter_topic
from wait_registry.records.topics import is_topic_name, redelivery_topic, retry_delay_s, retry_topic
from wait_registry.settings.processor import ExpiryPolicy, RedeliverTo, SourceKind
from wait_registry.settings.relations import Service
from wait_registry.settings.topics import WaitTopicSettings
from wait_registry.settings.tree import Settings, unresolved_placeholders

# Who uses topics: the services, and the operator who redrives dead letters.
TopicUser = Service | Literal["redrive"]


class TopicRole(StrEnum):
    """The role of a topic."""

    INPUT = "input"
    WAIT = "wait"
    DEAD_LETTER = "dead letter"
    REDELIVERY = "redelivery"
    RETRY = "retry"
    OPERATIONS = "operations"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as the settings require it; `waitreg topics create` sets ``creation_config``.

    ``delay_s`` is how long an input's records wait until they are handled, s, and ``redelivered`` whether expired ones
    are sent to it again. Without a topic that isn't ``required`` each service works, and only redrives don't.
    """

    topic: str
    role: TopicRole
    wait: WaitTopicSettings
    partitions: int = 1
    creation_config: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0
    redelivered: bool = False
    required: bool = True

    @property
    def owned(self) -> bool:
        """Whether this system creates the topic."""
        return self.role is not TopicRole.INPUT


def topic_specs(settings: Settings, service: TopicUser | None = None, existing: Iterable[str] = ()) -> list[TopicSpec]:
    """List the topics that the settings name, or those of them that one service uses; each once.

    Args:
        settings: what the topics must be.
        service: which service, all if None; ``redrive`` is the operator who redrives dead letters.
        existing: the topics that there are; retry topics are used as long as they exist.
    """
    if service == "redrive":
        targets = [_kept_spec(settings, topic, TopicRole.REDELIVERY) for topic in redelivery_topics(settings)]
        return [operations_spec(settings), *targets]
    specs = [wait_spec(settings)]
    if service in (None, "processor"):
        processor = settings.processor
        again = processor.redeliver_to is RedeliverTo.ORIGIN
        specs += [
            TopicSpec(topic, TopicRole.INPUT, settings.wait, delay_s=processor.delay_s, redelivered=again)
            for topic in processor.topics
        ]
        specs += [_redelivery_spec(settings, topic) for topic in redelivery_topics(settings)]
        specs += [_kept_spec(settings, topic, TopicRole.RETRY) for topic in retry_topics(settings, existing)]
    specs += [_dead_letter_spec(settings, topic) for topic in dead_letter_topics(settings, service)]
    if service in (None, "sink"):
        specs.append(operations_spec(settings))
    return list({spec.topic: spec for spec in reversed(specs)}.values())[::-1]


def wait_spec(settings: Settings) -> TopicSpec:
    """Describe the wait topic: compacted only, in broker time, tombstones kept long enough to be read."""
    wait = settings.wait
    config = {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "delete.retention.ms": str(wait.delete_retention_ms),
        "segment.ms": str(wait.segment_ms),
        "max.compaction.lag.ms": str(wait.max_compaction_lag_ms),
        "min.insync.replicas": str(wait.min_insync_replicas),
        "unclean.leader.election.enable": "false",
        "max.message.bytes": str(wait.max_message_bytes),
    }
    return TopicSpec(wait.topic, TopicRole.WAIT, wait, wait.partitions, config)


def operations_spec(settings: Settings) -> TopicSpec:
    """Describe the operations topic: one partition, kept longer than any dead letter."""
    retention = {"retention.ms": str(settings.operations.retention_ms), "retention.bytes": "-1"}
    spec = _uncompacted_spec(settings, settings.operations.topic, TopicRole.OPERATIONS, retention)
    return replace(spec, partitions=1)


def dead_letter_topics(settings: Settings, service: Service | None = None) -> list[str]:
    """Resolve the dead letter topics: ``{topic}`` and ``{group}`` are the processor's, so several may come out.

    If a placeholder can't be resolved, only the topics that sink and sweeper name are listed.
    """
    template, processor = settings.dead_letter.topic, settings.processor
    topics: list[str] = []
    if "{topic}" not in template and "{group}" not in template:
        topics.append(template)
    elif not unresolved_placeholders(settings):
        topics += [dead_letter_topic(template, topic, processor.group) for topic in processor.topics or ("",)]
    if service == "sink":
        topics = list(settings.sink.dead_letter_topics) or topics
    elif service is None:
        topics += settings.sink.dead_letter_topics
    if service in (None, "sweeper") and settings.sweeper.default_dead_letter_topic:
        topics.append(settings.sweeper.default_dead_letter_topic)
    return [topic for topic in dict.fromkeys(topics) if "{" not in topic]


def redelivery_topics(settings: Settings) -> list[str]:
    """List the group's own redelivery topics: for redrives, and for expired records if that is the policy.

    A share group consumes none, and some names of groups make no name of a topic.
    """
    processor = settings.processor
    if not processor.group or processor.source is SourceKind.SHARE:
        return []
    names = (redelivery_topic(topic, processor.group) for topic in processor.topics)
    return [name for name in names if is_topic_name(name)]


def retry_topics(settings: Settings, existing: Iterable[str] = ()) -> list[str]:
    """List the group's retry topics: one per input topic and delay, and others among the existing topics."""
    processor = settings.processor
    if not processor.group:
        return []
    group, delays = processor.group, processor.retry.delays_s
    named = [retry_topic(topic, group, delay) for topic in processor.topics for delay in delays]
    others = (name for name in existing for topic in processor.topics if retry_delay_s(name, topic, group))
    return list(dict.fromkeys([*named, *others]))


def _dead_letter_spec(settings: Settings, topic: str) -> TopicSpec:
    retention = {"retention.ms": str(settings.dead_letter.retention_ms)}
    return _uncompacted_spec(settings, topic, TopicRole.DEAD_LETTER, retention)


def _redelivery_spec(settings: Settings, topic: str) -> TopicSpec:
    spec = _kept_spec(settings, topic, TopicRole.REDELIVERY)
    if settings.processor.expiry_policy is ExpiryPolicy.REDELIVER:
        return spec
    # A group's assignor counts partitions and no records: docs/decisions/0034.
    return replace(spec, partitions=1, required=False)


def _kept_spec(settings: Settings, topic: str, role: TopicRole) -> TopicSpec:
    # Its records may be nowhere else, and its group may be away for any time. The processor deletes what it has
    # committed.
    return _uncompacted_spec(settings, topic, role, {"retention.ms": "-1", "retention.bytes": "-1"})


def _uncompacted_spec(settings: Settings, topic: str, role: TopicRole, retention: Mapping[str, str]) -> TopicSpec:
    wait = settings.wait
    config = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        **retention,
        "min.insync.replicas": str(wait.min_insync_replicas),
        "unclean.leader.election.enable": "false",
        "max.message.bytes": str(wait.max_message_bytes + DEAD_LETTER_EXTRA_BYTES),
    }
    return TopicSpec(topic, role, wait, settings.dead_letter.partitions, config)
