"""Mutants of what serves Kafka Connect: the outbox, and the checks before a connector is put in place."""

from __future__ import annotations

import pytest

from tests.mutants.mutant import mutant

Patch = pytest.MonkeyPatch


def _in_the_schema(patch: Patch, old: str, new: str) -> None:
    from wait_registry.postgres import schema
    from wait_registry.postgres.queries import sql_text

    text = sql_text("schema.sql")
    assert old in text, f"the schema has no {old!r}"
    patch.setattr(schema, "sql_text", lambda file: text.replace(old, new, 1))


@mutant("P3.18")
def exports_before_the_tables_are_complete(patch: Patch) -> None:
    """A row is due at its expiry, although the sink hasn't read the log so far."""
    _in_the_schema(patch, "least(now(), progress.position_time)", "now()")


@mutant("P3.19")
def exports_what_has_just_come(patch: Patch) -> None:
    """A row that a replay of the log shows for a moment is exported."""
    _in_the_schema(patch, "and wait.created_at < partition.standing_since", "")


@mutant("P4.14")
def numbers_the_outbox_out_of_order(patch: Patch) -> None:
    """A number becomes visible after a higher one, and the source misses its row."""
    _in_the_schema(patch, "perform pg_advisory_xact_lock(", "perform abs(")


@mutant("P1.15")
def writes_a_sources_tombstone_first(patch: Patch) -> None:
    """A tombstone settles a registration whose dead letter isn't in the log."""
    _in_the_schema(
        patch,
        "and exists (\n                select from dead_letter",
        "and not exists (\n                select from dead_letter",
    )


@mutant("P4.15")
def forgets_what_the_log_shows(patch: Patch) -> None:
    """After a restore of Postgres a source exports again what has its dead letter in the log."""
    _in_the_schema(patch, "and letter.reason = 'expired'", "and letter.reason = 'none'")


@mutant("P1.16")
def takes_a_source_that_reads_by_number(patch: Patch) -> None:
    """A source alongside a Connect sink passes over rows that are hidden for a moment."""
    from wait_registry.cli.connect import checks

    patch.setattr(checks, "asks_by_id", lambda config: False)


@mutant("P3.20")
def starts_a_sink_next_to_a_source(patch: Patch) -> None:
    """A new sink shows the history of the log for hours, and a running source exports it."""
    from wait_registry.cli.connect import checks

    patch.setattr(checks, "registries", lambda *_: set())
