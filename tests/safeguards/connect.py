"""Safeguards of what serves Kafka Connect: the outbox, and the checks before a connector is put in place."""

from __future__ import annotations

from pkgutil import resolve_name

from tests.safeguards.catalogue import Patch, safeguard


def _in_the_schema(patch: Patch, old: str, new: str) -> None:
    assert old in resolve_name("wait_registry.postgres.queries.sql_text")("schema.sql"), f"the schema has no {old!r}"

    @patch.around("wait_registry.postgres.queries.sql_text")
    def changed(original, file):
        return original(file).replace(old, new, 1) if file == "schema.sql" else original(file)


@safeguard("P3.18")
def without_complete_tables(patch: Patch) -> None:
    """A row is due at its expiry, although the sink hasn't read the log so far."""
    _in_the_schema(patch, "least(now(), progress.position_time)", "now()")


@safeguard("P3.19")
def without_settling_time(patch: Patch) -> None:
    """A row that a replay of the log shows for a moment is exported."""
    _in_the_schema(patch, "and wait.created_at < partition.standing_since", "")


@safeguard("P4.14")
def without_order_of_numbers(patch: Patch) -> None:
    """A number becomes visible after a higher one, and the source misses its row."""
    _in_the_schema(patch, "perform pg_advisory_xact_lock(", "perform abs(")


@safeguard("P1.15")
def without_dead_letters_before_sources_tombstones(patch: Patch) -> None:
    """A tombstone settles a registration whose dead letter isn't in the log."""
    letter = "exists (\n                select from dead_letter"
    _in_the_schema(patch, f"and {letter}", f"and not {letter}")


@safeguard("P4.15")
def without_exports_in_the_log(patch: Patch) -> None:
    """After a restore of Postgres a source exports again what has its dead letter in the log."""
    _in_the_schema(patch, "and dead_letter.reason = 'expired'", "and dead_letter.reason = 'none'")


@safeguard("P1.16")
def without_refusal_of_sources_by_number(patch: Patch) -> None:
    """A source alongside a Connect sink passes over rows that are hidden for a moment."""
    patch.replace("waitreg.connect.conflicts.asks_by_id", lambda config: False)


@safeguard("P3.20")
def without_refusal_of_sinks_next_to_sources(patch: Patch) -> None:
    """A new sink shows the history of the log for hours, and a running source exports it."""
    patch.replace("waitreg.connect.conflicts.registries", lambda *_: set())
