"""Take one rule out of the real redrive: each function removes the rule after which it is named.

Where a mutant of `tests.mutants` removes the same rule, it is called.
"""

from __future__ import annotations

from typing import Any

from pytest import MonkeyPatch

from redrive import executor
from redrive.executor import Executor
from tests.mutants import redrive
from tests.simulation.replay import process_name
from wait_registry.kafka.fenced_producer import FencedProducer


def marks_of_the_tail_count(patch: MonkeyPatch) -> None:
    """Let only the marks count that the tables show."""
    redrive.redrives_without_the_tail(patch)


def one_id_per_group(patch: MonkeyPatch) -> None:
    """Give each executor a transactional ID of its own."""
    shared = executor.transactional_id
    patch.setattr(executor, "transactional_id", lambda group: f"{shared(group)}.{process_name()}")


def fence_before_the_tail(patch: MonkeyPatch) -> None:
    """Fence when a chunk has been judged."""
    fence, write = FencedProducer.fence, FencedProducer.write

    def late(self: FencedProducer, *given: Any) -> None:
        if not hasattr(self, "has_fenced"):
            self.has_fenced = True  # type: ignore[attr-defined]
            fence(self)
        write(self, *given)

    patch.setattr(FencedProducer, "fence", lambda self: None)
    patch.setattr(FencedProducer, "write", late)


def record_with_its_mark(patch: MonkeyPatch) -> None:
    """Commit the records, then the marks."""
    redrive.marks_in_a_second_transaction(patch)


def unknown_commit_begins_at_the_fence(patch: MonkeyPatch) -> None:
    """After a commit without an answer, send the chunk again by another producer."""
    redrive.sends_again_after_an_unknown_commit(patch)


def mark_with_its_record(patch: MonkeyPatch) -> None:
    """Commit that a job has come to a dead letter before its record is sent."""
    write = Executor._write  # noqa: SLF001 - the rule is private

    def changed(self: Any, producer: Any, ready: Any, events: Any, *others: Any) -> None:
        if ready:
            write(self, producer, [], events)
            write(self, producer, ready, [], *others)
        else:
            write(self, producer, ready, events, *others)

    patch.setattr(Executor, "_write", changed)
