"""Safeguards of the library: Kafka clients and topics, settings, records, the command."""

from __future__ import annotations

import sys
from dataclasses import replace

from tests.safeguards.catalogue import NOTHING, Patch, safeguard


@safeguard(
    "P4.6", NOTHING, at="wait_registry.kafka.clients.consumer_config", real=True, world=lambda w: w.sees_aborted()
)
def without_committed_reading(original, kafka, **more):
    """An aborted tombstone settles a row.

    An aborted tombstone would hold a row back, but only until the sink has passed it.
    """
    return {**original(kafka, **more), "isolation.level": "read_uncommitted"}


@safeguard("P8.7", at="wait_registry.kafka.errors._is_broken_handshake")
def without_broken_handshakes(*_):
    """A connection that breaks during its handshake ends the process."""
    return False


@safeguard("P8.11", at="wait_registry.kafka.cluster.identity_changed")
def without_identity_of_topics(original, recorded, now):
    """A recreated topic counts as the same."""
    return original(replace(recorded, topic_id=now.topic_id), now)


@safeguard("P1.11", at="wait_registry.kafka.topic_specs._kept_spec")
def without_retention_of_redelivered_records(original, *given):
    """A redelivered record ages out before its group, which was down for longer, has consumed it."""
    spec = original(*given)
    return replace(spec, creation_config={**spec.creation_config, "retention.ms": "604800000"})


@safeguard("P8.15", at="waitreg.main.main")
def without_exit_status(original, *arguments):
    """A service that can't continue ends with status 0."""
    original(*arguments)
    return 0


@safeguard("P8.16", at="wait_registry.postgres.errors.error_text")
def without_shortened_messages(_, error):
    """A message of Postgres is logged with the row that it quotes."""
    return f"{type(error).__name__}: {error}"


@safeguard("P2.5")
def without_fixed_acknowledgments(patch: Patch) -> None:
    """A client property switches acknowledgments off, and the processor waits for them indefinitely."""
    patch.replace("wait_registry.settings.kafka._OURS_IN_LIBRDKAFKA", frozenset())


@safeguard("P4.16", at="wait_registry.settings.relations._sweeper_problems")
def without_refusal_of_sweepers_next_to_sources(*_):
    """Everything that expires is exported twice."""
    return ()


@safeguard("P7.4", at="wait_registry.records.wait_record.WaitRecordEncoder.__init__")
def without_limit_of_uncompressed_size(original, self, *common):
    """A record of any size is registered if it compresses well."""
    original(self, *common[:4], sys.maxsize)


@safeguard("P1.31", at="waitreg.rewind.plan._mode")
def without_mode_of_moved_offsets(_, position, target):
    """A record that was registered before a change to `off` is handled again, and expires all the same."""
    return position.metadata.registration


@safeguard("P1.31", at="waitreg.rewind.plan._metadata")
def without_bound_of_moved_offsets(original, position, target):
    """The warm-up after a move back ends before the records that may be registered do."""
    return replace(original(position, target), uncommitted_max=position.metadata.uncommitted_max)


@safeguard("P1.32", at="waitreg.rewind.offsets.require_no_members")
def without_refusal_of_groups_with_members(*_):
    """Only the broker refuses to move the offsets of a group with members, and names none of them."""


@safeguard("P8.29", at="wait_registry.postgres.connection.has_own_session")
def without_sessions_of_its_own(*_):
    """What needs a session takes one that a pooler gives to others, too."""
    return True


@safeguard("P8.29", at="wait_registry.postgres.connection._set")
def without_settings_that_end(original, settings, connection, *, local, **more):
    """Settings of a transaction stay in the session, which a pooler gives to others."""
    return original(settings, connection, local=False, **more)
