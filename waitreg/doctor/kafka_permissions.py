"""Check what this user may do in Kafka; nothing is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.errors import cause_of, is_access_problem, is_unknown_topic
from wait_registry.kafka.requests import answer, persistently, timeout_of
from wait_registry.kafka.topic_specs import TopicUser
from wait_registry.settings.tree import Settings
from waitreg.doctor.needed_permissions import ALL_OF_THE_CLUSTER, Need, grant, missing, needs

FIX: Final = "grant what is missing with kafka-acls --add"
NO_AUTHORIZER: Final = "no authorizer, or everything allowed"
_ALLOWED: Final = (AclOperation.ANY, AclPermissionType.ALLOW)


def permissions(service: TopicUser, settings: Settings) -> Iterator[Diagnosis]:
    """Compare what the broker allows with what the service needs; missing topics are skipped."""
    client, wanted = admin(settings.kafka), needs(settings, service)
    allowed = _allowed(client, wanted)
    lacking = {need: missing(need, allowed[need]) for need in wanted if need in allowed}
    for need, operations in lacking.items():
        if operations:
            seen = f"{', '.join(operations)} on {need.resource} {need.name} not allowed"
            yield (error if need.essential else warning)(seen, grant(settings, need, operations))
    if not any(lacking.values()):
        yield ok(f"all {sum(len(need.operations) for need in lacking)} permissions on {len(lacking)} resources")


def is_access_refused(refusal: ConfigurationError) -> bool:
    """Return whether Kafka refused a question because this user has no permission to ask it."""
    cause = cause_of(refusal)
    return cause is not None and is_access_problem(cause)


def sweeper_transactions(settings: Settings) -> Iterator[Diagnosis]:
    """Check whether the sweeper may use its transactional ids, as far as the broker reports it."""
    # The broker matches literal, prefixed and wildcard rules. The id of one partition stands for the others.
    prefix = f"waitreg.sweep.{settings.wait.topic}."
    command = " --resource-pattern-type prefixed"
    yield _transactions(settings, f"{prefix}0", f"{prefix}*", _grant_write(settings, prefix) + command)


def redrive_transactions(settings: Settings) -> Iterator[Diagnosis]:
    """Check whether the operator may use the transactional id of redrives; otherwise as `sweeper_transactions`."""
    group = settings.processor.group
    if not group:
        yield warning("processor.group isn't set, so nothing of the group is checked", "set processor.group")
        return
    name = f"waitreg.redrive.{group}"
    yield _transactions(settings, name, name, _grant_write(settings, name))


def _grant_write(settings: Settings, name: str) -> str:
    return grant(settings, Need("transactional-id", name, ()), ("WRITE", "DESCRIBE"))


def _transactions(settings: Settings, name: str, shown: str, command: str) -> Diagnosis:
    """Judge one transactional id.

    The protocol can't ask for one's own permissions on an id that isn't in use. A user with all permissions on the
    cluster may use it, an administrator may read the access control lists, and other users can't know.
    """
    client = admin(settings.kafka)
    on_the_cluster = _on_the_cluster(client)
    if on_the_cluster >= ALL_OF_THE_CLUSTER:
        return ok(NO_AUTHORIZER)
    # Checked before, because a user who may not read the rules gets an empty list instead of an error.
    if "DESCRIBE" not in on_the_cluster:
        return ok(f"WRITE on {shown} can't be checked with this user's permissions; if it is refused: {command}")
    matching = AclBindingFilter(ResourceType.TRANSACTIONAL_ID, name, ResourcePatternType.MATCH, None, None, *_ALLOWED)
    rules = answer(client, client.describe_acls(matching, request_timeout=timeout_of(client)), "reading access rules")
    user = f"User:{settings.kafka.security.username or '?'}"
    writes = [rule for rule in rules if rule.operation in (AclOperation.WRITE, AclOperation.ALL)]
    if any(rule.principal in (user, "User:*") for rule in writes):
        return ok(f"WRITE on {shown} is allowed to {user}")
    # A user with another name in the certificate has another rule.
    return warning(f"no rule allows {user} to WRITE on {shown} (a super user needs none)", command)


def _on_the_cluster(client: Admin) -> frozenset[str]:
    future = client.describe_cluster(include_authorized_operations=True, request_timeout=timeout_of(client))
    operations = answer(client, future, "asking for the permissions on the cluster").authorized_operations
    return frozenset(item.name for item in operations or ())


def _allowed(client: Admin, wanted: Sequence[Need]) -> Mapping[Need, frozenset[str]]:
    # The coordinator of a group that is new to the broker may not be elected yet.
    found = {need: persistently(client, partial(_operations, client, need)) for need in wanted}
    return {need: operations for need, operations in found.items() if operations is not None}


def _operations(client: Admin, need: Need) -> frozenset[str] | None:
    """Return what is allowed on one resource: nothing if that may not be asked, None if the resource is missing."""
    limits = {"include_authorized_operations": True, "request_timeout": timeout_of(client)}
    if need.resource == "topic":
        future = client.describe_topics(TopicCollection([need.name]), **limits)[need.name]
    else:
        future = client.describe_consumer_groups([need.name], **limits)[need.name]
    try:
        described = answer(client, future, f"asking for the permissions on {need.resource} {need.name}")
    except ConfigurationError as refusal:
        if is_unknown_topic(refusal):
            return None
        if is_access_refused(refusal):
            return frozenset()
        raise
    # A broker before 2.3 reports nothing, which is no refusal.
    operations = described.authorized_operations
    return frozenset(need.operations) if operations is None else frozenset(item.name for item in operations)
