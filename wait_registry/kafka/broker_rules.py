"""Whether brokers support what the settings need: a pure judgment of what they answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.kafka.api_versions import CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, BrokerSupport
from wait_registry.kafka.broker_question import AskedBroker

# The first level of metadata.version of each release of Kafka (MetadataVersion.java). A broker's highest level is that
# of its release, whatever level the cluster has.
_RELEASES: Final = (
    *((15, "3.7"), (20, "3.8"), (21, "3.9")),
    *((22, "4.0"), (26, "4.1"), (28, "4.2"), (30, "4.3"), (31, "4.4")),
)
_NEWEST_LEVEL: Final = 33
_LOSES_TRANSACTIONS: Final = frozenset({"4.3", "4.4"})
_OLDER: Final = "older than 3.7"
_NEWER: Final = "newer than 4.4"
_METADATA: Final = "metadata.version"

PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
VERSION_ID: Final = "kafka.version"
ASK_FIX: Final = (
    "check by yourself that each broker is of a version in docs/deploy.md; the services work without this answer"
)


def release(support: BrokerSupport) -> str | None:
    """Return which release of Kafka a broker is, None if it reports none, as other software and ZooKeeper's do."""
    level = support.supported.get(_METADATA)
    if level is None:
        return None
    if level > _NEWEST_LEVEL:
        return _NEWER
    return next((name for first, name in reversed(_RELEASES) if level >= first), _OLDER)


def version_lines(asked: Sequence[AskedBroker]) -> Iterator[Diagnosis]:
    """Yield what the brokers are, with a warning for versions that weren't tested or that lose transactions."""
    supports = [broker.support for broker in asked if broker.support is not None]
    if supports:
        yield _named(ok(_seen(supports)))
    releases = {name for support in supports if (name := release(support)) is not None}
    if losing := sorted(releases & _LOSES_TRANSACTIONS):
        yield _named(
            warning(
                f"brokers of Kafka {' and '.join(losing)}: if one crashes, 4.3.0 to 4.4.0 can lose the end of a "
                "transaction that they promised to commit, and all readers of committed records stop there",
                'run brokers of a version in docs/deploy.md; docs/runbook.md, "Transaction stays open", says what to '
                "do afterwards",
            )
        )
    for name in sorted(releases & {_OLDER, _NEWER}):
        yield _named(warning(f"brokers of a Kafka {name}, which wasn't tested", "run a version in docs/deploy.md"))
    if failed := [broker for broker in asked if broker.support is None]:
        first = failed[0]
        seen = f"{len(failed)} of {len(asked)} brokers can't be asked what they support; {first.address}"
        yield _named(warning(f"{seen}: {first.failure}", ASK_FIX))


def group_protocol_problem(asked: Sequence[AskedBroker], protocols: str | None) -> Diagnosis | None:
    """Refuse ``processor.group_protocol=consumer`` where it can't work.

    Args:
        asked: the brokers.
        protocols: the value of `PROTOCOLS` in a broker, None if it has none or may not be read.
    """
    fix = 'set processor.group_protocol to "classic"'
    if problem := _missing(asked, CONSUMER_GROUP_HEARTBEAT, "group.version"):
        seen = f"processor.group_protocol is consumer, but {problem}"
        return _refused("group_protocol", seen, f"{fix}, or {_needs('4.0', 'group.version')}")
    if protocols is not None and "consumer" not in {name.strip().lower() for name in protocols.split(",")}:
        seen = f"processor.group_protocol is consumer, but the brokers' {PROTOCOLS} is {protocols}"
        return _refused("group_protocol", seen, f"{fix}, or add consumer to {PROTOCOLS} of each broker")
    return None


def share_problem(asked: Sequence[AskedBroker]) -> Diagnosis | None:
    """Refuse ``processor.source=share`` where it can't work."""
    if problem := _missing(asked, SHARE_GROUP_HEARTBEAT, "share.version"):
        seen = f"processor.source is share, but {problem}"
        return _refused("share", seen, f'set processor.source to "group", or {_needs("4.2", "share.version")}')
    return None


def _needs(oldest: str, feature: str) -> str:
    command = f"kafka-features.sh --bootstrap-server KAFKA upgrade --feature {feature}=1"
    return f"run Kafka {oldest} or newer and switch it on: `{command}`"


def _missing(asked: Sequence[AskedBroker], api: int, feature: str) -> str | None:
    """Return what the brokers lack: the request, or the feature in the cluster.

    Kafka 3.7 to 3.9 list the request of a consumer group without the feature, and 4.x may have it off. Software that
    reports no finalized feature is judged by its requests alone.
    """
    for broker in asked:
        support = broker.support
        if support is None:
            continue
        where = f"broker {broker.address}{_said(support)}"
        if api not in support.apis:
            return f"{where} doesn't have it"
        if support.finalized and support.finalized.get(feature, 0) < 1:
            return f"{where} doesn't have it: the feature {feature} is off (0, expected 1 or more)"
    return None


def _said(support: BrokerSupport) -> str:
    name = release(support)
    return f" (Kafka {name})" if name is not None else ""


def _seen(supports: Sequence[BrokerSupport]) -> str:
    counts = Counter(release(support) or "unknown" for support in supports)
    versions = ", ".join(f"{name} ({count} brokers)" if count > 1 else name for name, count in sorted(counts.items()))
    finalized = max((support.finalized for support in supports), key=len)
    features = ", ".join(f"{name} {level}" for name, level in sorted(finalized.items())) or "none reported"
    return f"Kafka {versions}; features: {features}"


def _named(line: Diagnosis) -> Diagnosis:
    return replace(line, subject="Kafka version", id=VERSION_ID)


def _refused(part: Literal["group_protocol", "share"], seen: str, fix: str) -> Diagnosis:
    return replace(error(seen, fix), subject="Kafka features", id=f"kafka.{part}")
