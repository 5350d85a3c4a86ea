"""Mutants of the relations between settings."""

from __future__ import annotations

import pytest

from tests.mutants.mutant import mutant

Patch = pytest.MonkeyPatch


@mutant("P2.5")
def lets_acknowledgments_be_switched_off(patch: Patch) -> None:
    """A client property switches acknowledgments off, and the processor waits for them indefinitely."""
    from wait_registry.settings import kafka_relations

    patch.setattr(kafka_relations, "_OURS_IN_LIBRDKAFKA", {})


@mutant("P4.16")
def lets_a_sweeper_start_next_to_a_source(patch: Patch) -> None:
    """Everything that expires is exported twice."""
    from wait_registry.settings import relations

    patch.setattr(relations, "_sweeper_problems", lambda settings: ())
