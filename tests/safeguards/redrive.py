"""Safeguards of the redrive."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pkgutil import resolve_name

import pytest

from tests.safeguards.catalogue import NEVER_ENDS, Patch, safeguard

FENCED = "waitreg.redrive.execution.Fenced"
PRODUCER = "wait_registry.kafka.fenced_producer.FencedProducer"
DELETION = "waitreg.redrive.records_deletion"


@safeguard("R1.1", at="waitreg.redrive.operations_tail.OperationsTail.add", real=True, world=lambda w: w.redrives())
def without_operations_tail(*_):
    """Only the marks that the tables show count."""


@safeguard("R1.2", real=True, world=lambda w: w.redrives())
def without_one_executor_id(patch: Patch) -> None:
    """No executor fences another, and both send a record."""

    @patch.around("waitreg.redrive.execution.transactional_id")
    def transactional_id(original, group):
        return f"{original(group)}.{patch.own_name()}"


@safeguard("R1.2", world=lambda w: w.redrives())
def without_fence_before_operations_tail(patch: Patch) -> None:
    """An executor fences when a chunk has been judged, so the marks of another one may be missed."""
    fence = resolve_name(f"{PRODUCER}.fence")
    patch.replace(f"{PRODUCER}.fence", lambda self: None)

    @patch.around(f"{PRODUCER}.write")
    def write(original, self, *given):
        if not hasattr(self, "has_fenced"):
            self.has_fenced = True
            fence(self)
        original(self, *given)


@safeguard("R1.3", real=True, world=lambda w: w.resumed())
def without_marks_with_records(patch: Patch) -> None:
    """The records are committed before their marks, and a crash between sends the records again."""

    class Eager(resolve_name(PRODUCER)):
        def write(self, parts, limits, doing):
            for part in parts:
                super().write([part], limits, doing)

    patch.replace("waitreg.redrive.execution.FencedProducer", Eager)


@safeguard("R1.3", NEVER_ENDS, at=f"{FENCED}.write", world=lambda w: w.resumed())
def without_records_with_marks(original, self, events, *records):
    """An executor commits that a job has come to a dead letter before it sends the record."""
    original(self, events)
    if records and records[0]:
        original(self, [], *records)


@safeguard("R1.8", at=f"{FENCED}.write", real=True, world=lambda w: w.resumed())
def without_fence_after_unknown_commits(original, self, *given):
    """A chunk is sent by a new producer, although its commit may have been decided."""
    try:
        original(self, *given)
    except resolve_name("wait_registry.errors.TransientError"):
        settings = self.task.settings
        name = resolve_name("waitreg.redrive.execution.transactional_id")(self.task.job.group)
        timeout_ms = settings.redrive.transaction_timeout_ms
        again = resolve_name(PRODUCER)(settings.kafka, name, timeout_ms, queued=100, answers=True)
        again.fence()
        original(replace(self, producer=again), *given)
        again.close()
        raise


@safeguard("R1.4")
def without_marks_before_dead_letters(patch: Patch) -> None:
    """A dead letter that is read after its mark is open."""
    patch.query("sink", "show_marks_of_staged", "limit 1", "limit 0")


@safeguard("R1.5", at="waitreg.redrive.target._next_lineage")
def without_counted_deliveries(original, row):
    """A redriven record looks like the delivery that failed."""
    return original(row._replace(delivery=row.delivery - 1))


@safeguard("R1.6", at="waitreg.redrive.classifier.obstacle")
def without_allowed_categories(original, candidate, standing, job, most):
    """A record that may be done is handled twice, and no operator has said so."""
    allowed = resolve_name("waitreg.redrive.job_decision.ALLOWABLE")
    return original(candidate, standing, job.model_copy(update={"allowed": allowed}), most)


@safeguard("R1.7", at="waitreg.redrive.target.Route.obstacle")
def without_readers_of_the_target(*_):
    """A redrive ends with success, and no process gets its records."""


@safeguard("R1.14", at="waitreg.redrive.snapshot.TableSnapshot.candidates")
def without_ends_of_the_dry_run(original, tables, chosen, ends, after):
    """A job sends dead letters that have arrived after its dry run."""
    endless = {topic: dict.fromkeys(by, 2**62) for topic, by in ends.items()}
    return original(tables, chosen, endless, after)


@safeguard("R1.12", at="wait_registry.dead_letters.outcome_reader.OutcomeReader._have")
def without_wait_for_tables(*_):
    """A record whose dead letter the sink hasn't read yet counts as done."""
    return True


@safeguard("R1.13", at="waitreg.redrive.outcome_check.after_comebacks")
def without_pause_after_comebacks(*_):
    """All of a job's records are sent, although they are dead letters again."""
    return resolve_name("wait_registry.dead_letters.outcome.PROCEED")


@safeguard("R1.13", at="waitreg.redrive.outcome_check.after_canary")
def without_judged_canary(original, counts, *others):
    """The canary's dead letters don't count."""
    return original({**counts, resolve_name("wait_registry.dead_letters.outcome.Outcome.DEAD_AGAIN"): 0}, *others)


@safeguard("R1.13")
def without_comebacks_since_a_resumption(patch: Patch) -> None:
    """A job that was resumed is paused again by what came back before."""
    patch.query("sink", "change_operation", "then %(offset)s else", "then 0 else")


@safeguard("R1.15", at="waitreg.console.actions.tokens.JobTokens.read")
def without_job_tokens(original, tokens, person, token):
    """Each sending of a form is a job of its own."""
    job, fresh = original(tokens, person, token)
    return job.model_copy(update={"job": uuid.uuid4().hex[:12]}), fresh


@safeguard("R1.17", at="waitreg.redrive.progress.Progress.after")
def without_second_person(original, progress, event, offset):
    """The person who asks for a job approves it, too."""
    approved = resolve_name("wait_registry.records.operation.Approved")
    by_another = isinstance(event, approved) and event.by == progress.requested.by
    return original(progress, event.model_copy(update={"by": "another"}) if by_another else event, offset)


@safeguard("R1.17")
def without_approval(patch: Patch) -> None:
    """An executor takes an awaiting job for a running one."""
    none = {"approval": False}
    patch.replace("waitreg.redrive.approval.with_approval", lambda limits, job: job.model_copy(update=none))

    @patch.around("waitreg.redrive.progress.begun")
    def begun(original, job):
        return original(job.model_copy(update=none))


@safeguard("R1.18", at="waitreg.redrive.operator_events.record_reveal")
def without_recorded_reveals(*_):
    """A person is shown what is hidden before that is recorded, and also if it can't be."""


@safeguard("R1.19", at=f"{DELETION}.Deletion.first_open")
def without_open_dead_letters(*_):
    """What the marks say of a dead letter doesn't count, and open ones are deleted."""


@safeguard("R1.19", at=f"{DELETION}.Deletion.run")
def without_second_reading_of_marks(original, self, *asked):
    """What is restored between the reading and the deletion is deleted."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("wait_registry.kafka.tail_reader.TailReader.read_on", lambda _: 0)
        return original(self, *asked)


@safeguard("R1.19", at=f"{DELETION}.Deletion.first_unknown")
def without_unknown_records(*_):
    """Records that no table has count as known."""


@safeguard("R1.19", at="waitreg.redrive.records_deletion.prefix")
def without_position_before_deletion(original, first, recent, end, position):
    """The position of the tables limits nothing."""
    return original(first, recent, end, end)


@safeguard("R1.16")
def without_edited_record(patch: Patch) -> None:
    """The edited record is forgotten, and the one that failed is sent again."""
    patch.replace("waitreg.redrive.classifier.replaced", lambda row, *_: row)


@safeguard("R1.16")
def without_digest_of_the_edited(patch: Patch) -> None:
    """An edit is sent although the dead letter isn't the one that was edited."""
    patch.replace("waitreg.redrive.edit.record_digest", lambda content: "0" * 64)


@safeguard("R1.16", at="waitreg.console.actions.tokens._digest")
def without_digest_of_the_review(*_):
    """The console sends any bytes with the form of a review."""
    return ""


@safeguard("R1.16")
def without_edits_in_the_tables(patch: Patch) -> None:
    """A job that is resumed sends the record that failed."""
    patch.query("sink", "begin_operation", "%(replacement)s", "null")
