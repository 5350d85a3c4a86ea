"""Mutants of the redrive."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.mutants.mutant import changes_query, mutant

Patch = pytest.MonkeyPatch


@mutant("R1.1")
def redrives_without_the_tail(patch: Patch) -> None:
    """Only the marks that the tables show count."""
    from redrive.operations_tail import OperationsTail

    patch.setattr(OperationsTail, "add", lambda self, event, offset: None)


@mutant("R1.2")
def has_an_executor_id_of_its_own(patch: Patch) -> None:
    """No executor fences another, and both send a record."""
    from redrive import executor

    original = executor.transactional_id
    patch.setattr(executor, "transactional_id", lambda group: f"{original(group)}.{uuid.uuid4()}")


@mutant("R1.3")
def marks_in_a_second_transaction(patch: Patch) -> None:
    """A crash between the two transactions sends the records again."""
    from redrive import executor
    from wait_registry.kafka.fenced_producer import FencedProducer

    class Eager(FencedProducer):
        def write(self, parts: Any, limits: Any, doing: str) -> None:
            """Commit each part by itself."""
            for part in parts:
                super().write([part], limits, doing)

    patch.setattr(executor, "FencedProducer", Eager)


@mutant("R1.4")
def forgets_marks_of_dead_letters_that_come_later(patch: Patch) -> None:
    """A dead letter that is read after its mark is open."""
    changes_query(patch, "sink", "show_marks_of_staged", "limit 1", "limit 0")


@mutant("R1.5")
def counts_no_delivery(patch: Patch) -> None:
    """A redriven record looks like the delivery that failed."""
    from redrive import target

    original = target._next_lineage
    patch.setattr(target, "_next_lineage", lambda row: original({**row, "delivery": row["delivery"] - 1}))


@mutant("R1.6")
def redrives_what_may_be_done(patch: Patch) -> None:
    """Nobody has to say that an expired record may be handled twice."""
    from redrive import judge
    from redrive.category import ALLOWABLE, obstacle

    def anything(candidate: Any, standing: Any, rules: Any) -> Any:
        return obstacle(candidate, standing, rules._replace(allowed=ALLOWABLE))

    patch.setattr(judge, "obstacle", anything)


@mutant("R1.7")
def sends_to_where_nobody_reads(patch: Patch) -> None:
    """A redrive ends with success, and no process gets its records."""
    from redrive.target import Route

    patch.setattr(Route, "obstacle", lambda self, candidate: None)


@mutant("R1.8")
def sends_again_after_an_unknown_commit(patch: Patch) -> None:
    """A chunk is sent by a new producer, although its commit may have been decided."""
    from redrive.executor import Executor, transactional_id
    from wait_registry.errors import TransientError
    from wait_registry.kafka.fenced_producer import FencedProducer

    original = Executor._write

    def write(self: Any, producer: Any, *others: Any, **named: Any) -> None:
        try:
            original(self, producer, *others, **named)
        except TransientError:
            timeout_ms = self._settings.redrive.transaction_timeout_ms
            name = transactional_id(self._job.group)
            again = FencedProducer(self._settings.kafka, name, timeout_ms, queued=100, answers=True)
            again.fence()
            original(self, again, *others, **named)
            again.close()
            raise

    patch.setattr(Executor, "_write", write)


@mutant("R1.14")
def takes_what_arrives_later(patch: Patch) -> None:
    """The ends that the dry run found don't count."""
    from redrive.view import View

    original = View.candidates

    def candidates(view: View, chosen: Any, ends: Any, after: Any) -> Any:
        endless = {topic: dict.fromkeys(by, 2**62) for topic, by in ends.items()}
        return original(view, chosen, endless, after)

    patch.setattr(View, "candidates", candidates)


@mutant("R1.15")
def starts_a_job_for_each_click(patch: Patch) -> None:
    """Each sending of a form is a job of its own."""
    from console.acting.job_token import JobTokens

    original = JobTokens.read

    def read(tokens: JobTokens, person: str, token: str) -> Any:
        job, fresh = original(tokens, person, token)
        return job.model_copy(update={"job": uuid.uuid4().hex[:12]}), fresh

    patch.setattr(JobTokens, "read", read)


@mutant("R1.17")
def lets_the_same_person_approve(patch: Patch) -> None:
    """The person who asks for a job approves it, too."""
    from redrive import approval
    from wait_registry.records.operation import Approved

    original = approval.after

    def after(course: Any, event: Any, job: Any) -> Any:
        by_another = isinstance(event, Approved) and event.by == job.by
        return original(course, event.model_copy(update={"by": "another"}) if by_another else event, job)

    patch.setattr(approval, "after", after)


@mutant("R1.17")
def runs_what_awaits_an_approval(patch: Patch) -> None:
    """An executor takes an awaiting job for a running one."""
    from redrive import approval
    from wait_registry.records.operation import State

    patch.setattr(approval, "first_course", lambda job: approval.Course(State.RUNNING))
    patch.setattr(approval, "needs_approval", lambda limits, job: False)


@mutant("R1.18")
def shows_what_is_hidden_without_a_record(patch: Patch) -> None:
    """A person is shown what is hidden before that is recorded, and also if it can't be."""
    from redrive import job_change

    patch.setattr(job_change, "record_reveal", lambda *_: None)


@mutant("R1.19")
def deletes_open_dead_letters(patch: Patch) -> None:
    """What the marks say of a dead letter doesn't count."""
    from redrive.records_deletion import Deletion

    patch.setattr(Deletion, "_first_open", lambda *_: None)


@mutant("R1.19")
def deletes_by_an_old_look(patch: Patch) -> None:
    """What is restored between the look and the deletion is deleted."""
    from redrive.records_deletion import Deletion
    from wait_registry.kafka.tail_reader import TailReader

    original = Deletion.run

    def run(self: Any, *asked: Any) -> Any:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(TailReader, "read_on", lambda _: 0)
            return original(self, *asked)

    patch.setattr(Deletion, "run", run)


@mutant("R1.19")
def deletes_what_the_tables_lack(patch: Patch) -> None:
    """Records that no table has count as known."""
    from redrive.records_deletion import Deletion

    patch.setattr(Deletion, "_first_unknown", lambda *_: None)


@mutant("R1.19")
def deletes_what_is_not_read(patch: Patch) -> None:
    """The position of the tables limits nothing."""
    from redrive import prefix_cut, records_deletion

    original = prefix_cut.prefix
    patch.setattr(records_deletion, "prefix", lambda bounds: original(bounds._replace(position=bounds.end)))


@mutant("R1.12")
def believes_tables_that_are_behind(patch: Patch) -> None:
    """A record whose dead letter the sink hasn't read yet counts as done."""
    from redrive.outcomes import Outcomes

    patch.setattr(Outcomes, "_have", lambda self, topics: True)


@mutant("R1.13")
def never_pauses_by_itself(patch: Patch) -> None:
    """All of a job's records are sent, although they are dead letters again."""
    from redrive import brake
    from redrive.outcome import PROCEED

    patch.setattr(brake, "after_comebacks", lambda numbers, above: PROCEED)


@mutant("R1.13")
def continues_after_any_canary(patch: Patch) -> None:
    """The canary's dead letters don't count."""
    from redrive import brake
    from redrive.outcome import Outcome, after_canary

    patch.setattr(
        brake, "after_canary", lambda counts, *others: after_canary({**counts, Outcome.DEAD_AGAIN: 0}, *others)
    )


@mutant("R1.13")
def counts_comebacks_of_before_a_resumption(patch: Patch) -> None:
    """A job that was resumed is paused again by what came back before."""
    changes_query(patch, "sink", "change_operation", "then %(offset)s else", "then 0 else")


@mutant("R1.10")
def never_looks_for_a_topic_again(patch: Patch) -> None:
    """A processor reads the redelivery topics that were there at its start, and no others."""
    from processor.intake.absent_topics import AbsentTopics

    async def looks_at_nothing(self: AbsentTopics) -> None:
        return

    patch.setattr(AbsentTopics, "run_once", looks_at_nothing)


@mutant("R1.16")
def sends_the_record_of_the_dead_letter(patch: Patch) -> None:
    """The edited record is forgotten, and the one that failed is sent again."""
    from redrive import judge

    patch.setattr(judge, "replaced", lambda row, job: row)


@mutant("R1.16")
def replaces_any_record(patch: Patch) -> None:
    """An edit is sent although the dead letter isn't the one that was edited."""
    from redrive import edit

    patch.setattr(edit, "record_digest", lambda content: "0" * 64)


@mutant("R1.16")
def starts_what_was_not_reviewed(patch: Patch) -> None:
    """The console sends any bytes with the form of a review."""
    from console.acting import job_token

    patch.setattr(job_token, "_digest", lambda replacement: "")


@mutant("R1.16")
def keeps_no_edit_in_the_tables(patch: Patch) -> None:
    """A job that is resumed sends the record that failed."""
    changes_query(patch, "sink", "begin_operation", "%(replacement)s", "null")
