"""Check that Kafka answers, its version, and the topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from confluent_kafka.admin import ConfigResource, ResourceType

from wait_registry.cli.checks.check import Concerned
from wait_registry.cli.checks.versions import parts
from wait_registry.diagnosis import Diagnosis, Severity, ok, warning
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import broker_ids, cluster_id
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.kafka.topics import check_topics
from wait_registry.settings.root import Settings

REACH_FIX: Final = "start the broker, or correct kafka.bootstrap_servers and kafka.security"
_OLD: Final = "inter.broker.protocol.version"
_NEW: Final = "group.coordinator.rebalance.protocols"
_UPGRADE: Final = "nothing needs to be done now; plan the brokers' upgrade to 4.x, which is what the tests run on"


def reach(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the cluster for its id; raises the error for a refusal or no answer."""
    seen = f"{settings.kafka.bootstrap_servers}, cluster {cluster_id(admin(settings.kafka))}"
    yield ok(seen)


def broker_version(settings: Settings) -> Iterator[Diagnosis]:
    """Read a broker's version from its configuration, because the client can't ask for it."""
    client = admin(settings.kafka)
    resource = ConfigResource(ResourceType.BROKER, str(broker_ids(client)[0]))
    future = client.describe_configs([resource], request_timeout=timeout_of(client))[resource]
    try:
        entries = answer(client, future, "reading a broker's configuration")
    except ConfigurationError:
        seen = "version unknown: this user may not read the brokers' configuration (DescribeConfigs on the cluster)"
        yield ok(seen)
        return
    yield broker_line({name: str(entry.value) for name, entry in entries.items()})


def broker_line(config: Mapping[str, str]) -> Diagnosis:
    """Judge by a broker's configuration, which has the version up to 3.x and not from 4.0 on."""
    if _OLD in config:
        release = ".".join(map(str, parts(config[_OLD])))
        seen = f"{release} ({_OLD}), older than 4.x, which it was tested with"
        return warning(seen, _UPGRADE)
    if _NEW in config:
        return ok("4.0 or newer; the client can't ask for more")
    return ok("version unknown: it isn't in the broker's configuration")


def topics(services: Sequence[Concerned], settings: Settings) -> Iterator[Diagnosis]:
    """Compare the topics of these services with what they must be; raises as `check_topics`."""
    # Two services share topics. What exports by Connect works on those that a sink reads.
    used = ("sink" if service == "connect" else service for service in services)
    found = {(one.subject, one.id): one for service in used for one in check_topics(settings, service)}
    yield from by_topic(sorted(found.values(), key=lambda one: one.subject))


def by_topic(rules: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """Yield one diagnosis per broken rule, and one for a topic that breaks none; rules of a topic follow each other."""
    for subject, group in groupby(rules, key=lambda rule: rule.subject):
        checked = list(group)
        broken = [rule for rule in checked if rule.severity is not Severity.OK]
        yield from broken
        if not broken:
            role = ".".join(checked[0].id.split(".")[:2])
            hold = "its rule holds" if len(checked) == 1 else f"{len(checked)} rules hold"
            name = role.partition(".")[2].replace("_", " ")
            yield Diagnosis(subject, Severity.OK, f"the {name} topic, {hold}", id=role)
