"""The safeguards of the processor, each with what breaks when it is taken out of the real engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest import MonkeyPatch

from tests.simulation import ordering_removals, removals


@dataclass(frozen=True, slots=True)
class Safeguard:
    """One rule of the engine.

    Args:
        remove: takes it out of the engine; it has the rule's name, and says what is done instead.
        clause: of tests/guarantees.toml, which the product keeps by the rule.
        breaks: the guarantee that is broken without it; None where no seed shows that it is missing.
        since: why it stays although no seed misses it.
        first: the first seed to try, where only one in thousands misses it.
    """

    remove: Callable[[MonkeyPatch], None]
    clause: str
    breaks: str | None = "P1"
    since: str = ""
    first: int = 0

    @property
    def name(self) -> str:
        """Return its name, for tests and tables."""
        return self.remove.__name__.replace("_", "-")


PROCESSOR = (
    Safeguard(removals.commit_waits_for_acknowledgment, "P2.2", "P2"),
    Safeguard(removals.commit_is_contiguous, "P2.1", "P2"),
    Safeguard(removals.unregistrable_waits_for_letter, "P1.2", "P2"),
    Safeguard(removals.unregistrable_holds_the_commit, "P1.2", "P2"),
    Safeguard(removals.late_refusal_settles, "P1.2"),
    Safeguard(removals.letter_of_unregistered_first, "P1.2", "P2"),
    Safeguard(removals.bound, "P7.1", "P7"),
    Safeguard(removals.no_warm_up, "P1.1"),
    Safeguard(removals.warm_up_counts_the_recorded_bound, "P1.1"),
    Safeguard(removals.unknown_bound_is_no_limit, "P1.1"),
    Safeguard(removals.unknown_end_is_no_limit, "P1.1"),
    Safeguard(
        removals.warm_up_ends,
        "P1.1",
        None,
        "Without an end every call would wait for a commit, for as long as the assignment lasts.",
    ),
    Safeguard(removals.switching_warms_up, "P1.1"),
    Safeguard(removals.bound_is_announced, "P1.39"),
    Safeguard(removals.held_waits_for_the_commit, "P1.1"),
    Safeguard(removals.uncovered_held_expires, "P1.1"),
    Safeguard(removals.tombstone_waits_for_letter, "P1.3"),
    Safeguard(removals.outcome_waits_for_the_report, "P1.3"),
    Safeguard(removals.letter_waits_for_the_report, "P1.3"),
    Safeguard(removals.wait_id_is_computed, "P1.7"),
    Safeguard(removals.no_tombstone_on_revoke, "P1.6"),
    Safeguard(removals.revoke_flushes, "P1.4"),
    Safeguard(removals.commit_stops_at_unstarted, "P1.4"),
    Safeguard(removals.committed_is_kept, "P1.4"),
    Safeguard(
        removals.requested_counts_as_committed,
        "P1.5",
        None,
        "One seed in thousands misses it; stories of the engine do.",
    ),
    Safeguard(removals.dropped_calls_are_cancelled, "P1.4"),
    Safeguard(removals.blocked_calls_are_cancelled_one_by_one, "P7.18", "P7"),
    Safeguard(removals.blocked_record_waits_for_its_call, "P7.18", "P7", first=3_000),
    Safeguard(removals.route_has_a_limit, "P7.19", "P7"),
    Safeguard(removals.slots_of_routes_come_back, "P7.19"),
    Safeguard(removals.registers_after_the_news, "P1.1", None, "One seed in thousands misses it; a small world does."),
    Safeguard(removals.deferred_proves_ownership, "P1.1"),
    Safeguard(
        removals.commits_again_to_prove,
        "P1.1",
        None,
        "Slow records of a partition where nothing moves are registered later, and their commit waits for their calls.",
    ),
    Safeguard(removals.delay_is_awaited, "D1.1", "D1"),
    Safeguard(removals.early_is_polled_again, "P1.24"),
    Safeguard(ordering_removals.earlier_is_awaited, "O1.1", "O1"),
    Safeguard(ordering_removals.malformed_is_awaited, "O1.1", "O1"),
    Safeguard(ordering_removals.letter_is_awaited, "O1.1", "O1"),
    Safeguard(ordering_removals.order_is_that_of_polling, "O1.1", "O1"),
    Safeguard(ordering_removals.cancelled_call_is_awaited, "O1.2", "O1"),
    Safeguard(removals.renewal_is_the_next_owners, "O1.5", "O1", first=4_900),
    Safeguard(removals.overdue_is_renewed, "P3.16", "P3"),
    Safeguard(
        removals.time_left_is_awaited,
        "P3.16",
        None,
        "The acknowledgment must take nearly all of the time to live while slots become free; the engine's test does.",
    ),
)
