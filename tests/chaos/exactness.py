"""Whether every record of a scenario ended as it must, by the reconciliation of `waitreg reconcile`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.chaos.stage import Place
from wait_registry.records.tombstone import Outcome
from waitreg.downstream.calls import Call
from waitreg.reconcile.evidence import query, read_evidence
from waitreg.reconcile.reconciliation import Evidence, reconcile
from waitreg.reconcile.wait_log import WaitEntry


def read_scenario(place: Place, kills_ms: Sequence[int]) -> Evidence:
    """Read what a scenario has left; without the called service's log, `done` tombstones count as its calls.

    ``kills_ms``: when processors were killed.

    Raises:
        WaitRegistryError: Kafka or Postgres can't be reached, or a file is something else.
    """
    is_called = place.calls.exists()
    place.calls.touch()
    evidence = read_evidence(place.settings, place.manifest, place.calls, kills_ms)
    return evidence if is_called else replace(evidence, calls=list(_calls(evidence)))


def _calls(evidence: Evidence) -> Iterator[Call]:
    places = {wait_id: place for place, wait_id in evidence.wait_ids.items()}
    bodies = {one.coordinates: one.fingerprint.value or "" for one in evidence.published}
    for entry in with_outcome(evidence, Outcome.DONE):
        if (place := places.get(entry.wait_id)) is not None:
            at_ms, at_s = entry.append_ms, entry.append_ms / 1000
            yield Call(0, at_ms, at_ms, at_s, at_s, entry.wait_id, *place, 1, 200, bodies[place])


def with_outcome(evidence: Evidence, outcome: Outcome) -> list[WaitEntry]:
    """Return the tombstones of an outcome."""
    return [entry for entry in evidence.wait_log if entry.outcome == outcome]


def inexact(place: Place, evidence: Evidence, published: int) -> Iterator[str]:
    """Yield what is wrong at the end of a scenario, whose load generator counted this number of records."""
    found = reconcile(evidence)
    yield from (f"{problem.breach}: {problem.about}" for problem in found.problems)
    if (found.published, found.waiting) != (published, 0):
        yield f"{published} records were published, {found.published} are listed, {found.waiting} are still registered"
    if not found.done:
        yield "nothing was done"
    if evidence.kills_ms and not with_outcome(evidence, Outcome.EXPIRED):
        yield "nothing expired, although a processor was killed: nothing was shown about exports"
    rows = query(place.settings, "select wait_expiration_uuid from dead_letter")
    if sorted(wait_id for (wait_id,) in rows) != sorted(letter.wait_id for letter in evidence.dead_letters):
        yield f"{len(rows)} dead letters in the table, {len(evidence.dead_letters)} in the topic, or others"
