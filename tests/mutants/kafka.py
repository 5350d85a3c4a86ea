"""Mutants of the Kafka clients, of what services ask of topics, and of how they end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.mutants.mutant import mutant

Patch = pytest.MonkeyPatch


@mutant("P4.6")
def reads_aborted_records(patch: Patch) -> None:
    """An aborted tombstone settles a row."""
    from wait_registry.kafka import clients

    original = clients.consumer_config
    uncommitted = {"isolation.level": "read_uncommitted"}
    patch.setattr(clients, "consumer_config", lambda kafka, **more: {**original(kafka, **more), **uncommitted})


@mutant("P8.10")
def waits_for_room_that_never_comes(patch: Patch) -> None:
    """A record that is larger than the producer's queue waits for room in it indefinitely."""
    from wait_registry.kafka import clients

    original = clients.producer_config
    largest = {"message.max.bytes": clients.PRODUCER_MAX_MESSAGE_BYTES}
    patch.setattr(clients, "producer_config", lambda kafka, **more: {**original(kafka, **more), **largest})


@mutant("P8.7")
def takes_a_broken_handshake_for_a_refusal(patch: Patch) -> None:
    """A connection that breaks during its handshake ends the process."""
    from wait_registry.kafka import errors

    patch.setattr(errors, "_is_broken_handshake", lambda error: False)


@mutant("P8.3")
def calls_a_new_topic_missing(patch: Patch) -> None:
    """A service refuses to start on a topic that was just created."""
    from wait_registry.kafka import topics

    patch.setattr(topics, "topic_names", lambda client: frozenset())


@mutant("P8.11")
def takes_any_topic_of_the_name(patch: Patch) -> None:
    """A recreated topic counts as the same."""
    from wait_registry.kafka import cluster

    original = cluster.identity_changed

    def changed(recorded: Any, now: Any) -> str | None:
        return original(replace(recorded, topic_id=now.topic_id), now)

    patch.setattr(cluster, "identity_changed", changed)


@mutant("P1.11")
def deletes_redelivered_records_by_age(patch: Patch) -> None:
    """A redelivered record ages out before its group, which was down for longer, has consumed it."""
    from wait_registry.kafka import topic_specs

    original = topic_specs._redelivery_spec

    def spec(settings: Any, topic: str) -> Any:
        made = original(settings, topic)
        return replace(made, creation_config={**made.creation_config, "retention.ms": "604800000"})

    patch.setattr(topic_specs, "_redelivery_spec", spec)


@mutant("P4.8")
def takes_the_times_of_writers(patch: Patch) -> None:
    """Services don't warn about a dead letter topic that takes the timestamps of its writers."""
    from wait_registry.kafka import topic_rules

    original = topic_rules._uncompacted_rules

    def rules(spec: Any, state: Any) -> Iterator[Any]:
        return (rule for rule in original(spec, state) if rule.name != "message.timestamp.type")

    patch.setattr(topic_rules, "_uncompacted_rules", rules)


@mutant("P8.15")
def ends_with_status_0(patch: Patch) -> None:
    """A service that can't continue ends as if all were well."""
    from wait_registry.cli import main as command

    original = command.main

    def main(*arguments: Any) -> int:
        original(*arguments)
        return 0

    patch.setattr(command, "main", main)


@mutant("P8.16")
def quotes_rows(patch: Patch) -> None:
    """A message of Postgres is logged with the row that it quotes."""
    from wait_registry.postgres import error_text

    patch.setattr(error_text, "error_text", lambda error: f"{type(error).__name__}: {error}")
