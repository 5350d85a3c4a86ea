"""The rights that each service needs, and no more: what docs/refusals.md lists, granted on a broker that asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.support.secured_broker import Resource, SecuredBroker
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings


class Right(NamedTuple):
    """Operations on one resource."""

    resource: Resource
    name: str
    operations: tuple[str, ...]
    prefixed: bool = False


def rights_of(service: Service, settings: Settings) -> Iterator[Right]:
    """Yield what a service needs; DESCRIBE comes with READ and WRITE."""
    wait, dead_letters = settings.wait.topic, settings.dead_letter.topic
    if service == "processor":
        yield from (Right("topic", topic, ("READ", "DESCRIBE_CONFIGS")) for topic in settings.processor.topics)
        yield Right("group", settings.processor.group, ("READ",))
        yield Right("topic", wait, ("WRITE", "DESCRIBE_CONFIGS"))
        yield Right("topic", dead_letters, ("WRITE", "DESCRIBE_CONFIGS"))
    elif service == "sink":
        yield Right("topic", wait, ("READ", "DESCRIBE_CONFIGS"))
        yield Right("topic", dead_letters, ("READ", "DESCRIBE_CONFIGS"))
        yield Right("group", f"waitreg.sink.{wait}", ("READ",))
    else:
        yield Right("topic", wait, ("READ", "WRITE", "DESCRIBE_CONFIGS"))
        yield Right("topic", dead_letters, ("WRITE", "DESCRIBE_CONFIGS"))
        yield Right("group", f"waitreg.sweep.{wait}", ("READ",))
        yield Right("transactional_id", f"waitreg.sweep.{wait}.", ("WRITE",), prefixed=True)


def grant_all(secured: SecuredBroker, user: str, service: Service, settings: Settings) -> None:
    """Give a user the rights of a service."""
    for right in rights_of(service, settings):
        secured.grant(user, right.resource, right.name, right.operations, prefixed=right.prefixed)
