"""The Kafka rights of a worker and of what runs on it, and no more; READ and WRITE bring DESCRIBE along."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.secured_broker import SecuredBroker
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.settings.root import Settings


def grant_worker(secured: SecuredBroker, user: str, group: str) -> None:
    """Give a worker its own group, its three topics (which it makes), and the transactions of its leader."""
    secured.grant(user, "group", group, ("READ",))
    secured.grant(user, "topic", f"{group}-", ("READ", "WRITE", "CREATE", "DESCRIBE_CONFIGS"), prefixed=True)
    secured.grant(user, "transactional_id", f"connect-cluster-{group}", ("WRITE",))


def grant_sink(secured: SecuredBroker, user: str, settings: Settings, connectors: Sequence[Connector]) -> None:
    """Let sinks read their topics in their groups, and put aside what they can't read."""
    for topic in (settings.wait.topic, settings.dead_letter.topic):
        secured.grant(user, "topic", topic, ("READ",))
    for connector in connectors:
        secured.grant(user, "group", f"connect-{connector.name}", ("READ",))
        aside = connector.config["errors.deadletterqueue.topic.name"]
        secured.grant(user, "topic", aside, ("CREATE", "WRITE"))


def grant_source(
    secured: SecuredBroker, user: str, settings: Settings, group: str, connectors: Sequence[Connector]
) -> None:
    """Let sources write their topics and their offsets, in transactions of their own."""
    for topic in (settings.wait.topic, settings.dead_letter.topic):
        secured.grant(user, "topic", topic, ("WRITE",))
    secured.grant(user, "topic", f"{group}-offsets", ("READ", "WRITE"))
    for connector in connectors:
        heartbeat = f"{connector.config['topic.heartbeat.prefix']}.{connector.config['topic.prefix']}"
        secured.grant(user, "topic", heartbeat, ("CREATE", "WRITE"))
        secured.grant(user, "transactional_id", f"{group}-{connector.name}-", ("WRITE",), prefixed=True)
