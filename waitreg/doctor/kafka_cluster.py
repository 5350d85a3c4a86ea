"""Check that Kafka answers, and the topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from wait_registry.diagnosis import Diagnosis, Severity, ok
from wait_registry.kafka.broker_checks import check_brokers
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id
from wait_registry.kafka.topics import check_topics
from wait_registry.settings.tree import Settings
from waitreg.doctor.check import Concerned

REACH_FIX: Final = "start the broker, or correct kafka.bootstrap_servers and kafka.security"


def reach(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the cluster for its id; raises the error for a refusal or no answer."""
    seen = f"{settings.kafka.bootstrap_servers}, cluster {cluster_id(admin(settings.kafka))}"
    yield ok(seen)


def brokers(services: Sequence[Concerned], settings: Settings) -> Iterator[Diagnosis]:
    """Ask the brokers what they are, and whether they have what a processor needs; raises as `check_brokers`."""
    yield from check_brokers(settings, "processor" in services)


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
