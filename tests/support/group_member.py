"""A plain consumer that is a member of a group under KIP-848."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer


def group_member(bootstrap: str, group: str, topics: Iterable[str]) -> Consumer:
    """Return a consumer that has subscribed and commits nothing; the caller closes it."""
    member = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "enable.auto.commit": False,
        }
    )
    member.subscribe(list(topics))
    return member
