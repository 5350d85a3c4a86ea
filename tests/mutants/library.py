"""Mutants of the library: Kafka clients and topics, settings, records."""

from __future__ import annotations

import sys
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


@mutant("P8.7")
def takes_a_broken_handshake_for_a_refusal(patch: Patch) -> None:
    """A connection that breaks during its handshake ends the process."""
    from wait_registry.kafka import errors

    patch.setattr(errors, "_is_broken_handshake", lambda error: False)


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

    original = topic_specs._kept_spec

    def spec(settings: Any, topic: str, role: Any) -> Any:
        made = original(settings, topic, role)
        return replace(made, creation_config={**made.creation_config, "retention.ms": "604800000"})

    patch.setattr(topic_specs, "_kept_spec", spec)


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


@mutant("P2.5")
def lets_acknowledgments_be_switched_off(patch: Patch) -> None:
    """A client property switches acknowledgments off, and the processor waits for them indefinitely."""
    from wait_registry.settings import kafka_relations

    patch.setattr(kafka_relations, "_OURS_IN_LIBRDKAFKA", frozenset())


@mutant("P4.16")
def lets_a_sweeper_start_next_to_a_source(patch: Patch) -> None:
    """Everything that expires is exported twice."""
    from wait_registry.settings import relations

    patch.setattr(relations, "_sweeper_problems", lambda settings: ())


@mutant("P7.4")
def registers_what_only_compression_makes_small(patch: Patch) -> None:
    """A record of any size is registered if it compresses well."""
    from wait_registry.records.wait_record import WaitRecordEncoder

    original: Any = WaitRecordEncoder.__init__

    def begin(self: WaitRecordEncoder, *common: Any) -> None:
        original(self, *common[:5], sys.maxsize)

    patch.setattr(WaitRecordEncoder, "__init__", begin)


@mutant("P1.31")
def gives_a_group_in_off_no_warm_up(patch: Patch) -> None:
    """A record that was registered before a change to `off` is handled again, and expires all the same."""
    from wait_registry.cli.rewind import plan

    patch.setattr(plan, "_mode", lambda position, target: position.metadata.registration)


@mutant("P1.31")
def keeps_the_number_of_a_move_back(patch: Patch) -> None:
    """The warm-up after a move back ends before the records that may be registered do."""
    from wait_registry.cli.rewind import plan

    original = plan._metadata

    def metadata(position: Any, target: int) -> Any:
        return replace(original(position, target), uncommitted_max=position.metadata.uncommitted_max)

    patch.setattr(plan, "_metadata", metadata)


@mutant("P1.32")
def moves_offsets_without_a_look_at_members(patch: Patch) -> None:
    """Only the broker refuses to move the offsets of a group with members, and names none of them."""
    from wait_registry.cli.rewind import offsets

    patch.setattr(offsets, "require_no_members", lambda kafka, group: None)
