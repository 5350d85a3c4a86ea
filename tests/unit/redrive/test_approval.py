"""Which jobs another person has to approve, the state of a job after each event, and which records may be deleted."""

from __future__ import annotations

import os
import pwd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.jobs import requested
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Approved, Changed, Kind, Replacement, State
from wait_registry.settings.redrive import RedriveSettings
from waitreg.redrive.approval import ENDED, Course, after, first_course, needs_approval, require_awaiting, to_send
from waitreg.redrive.prefix_cut import Bounds, Limit, Obstacle, Prefix, obstacle, prefix
from waitreg.redrive.request import account, asker_of_command

JOB = requested("shop", approval=True)
PEOPLE = st.sampled_from(["anna", "ben", "system"])
EVENTS = st.one_of(
    st.builds(Approved, job=st.just("job-1"), by=PEOPLE, authenticated=st.booleans(), via=st.just("console")),
    st.builds(Changed, job=st.just("job-1"), state=st.sampled_from(State), by=PEOPLE),
)


def approved(by: str) -> Approved:
    """Return the approval of the job by a person."""
    return Approved(job="job-1", by=by, authenticated=True, via="console")


def changed(state: State) -> Changed:
    """Return the event that puts the job into a state."""
    return Changed(job="job-1", state=state, by="ben")


@pytest.mark.parametrize(
    ("above", "changes", "needs"),
    [
        (None, {"expected": {"redriven": 10_000}}, False),
        (10, {"expected": {"redriven": 10, "max_redrives": 50}}, False),
        (10, {"expected": {"redriven": 11}}, True),
        (10, {"expected": {"redriven": 11}, "limit": 10}, False),
        (0, {"expected": {"redriven": 1}}, True),
        (0, {"expected": {"archived": 1}, "kind": Kind.ARCHIVE}, False),
        (None, {"approval": True}, True),
    ],
)
def test_a_redrive_of_many_needs_an_approval(above: int | None, changes: dict[str, object], needs: bool) -> None:
    job = requested("shop", (), **changes)
    assert needs_approval(RedriveSettings(approve_above=above), job) is needs
    assert to_send(job) <= sum(job.expected.values())


def test_no_variable_makes_another_person_of_who_runs_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "ben")
    assert asker_of_command() == (pwd.getpwuid(os.getuid()).pw_name, False, "command")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)
    assert account() == "uid 4000000000"


@pytest.mark.parametrize("asked_for", [False, True])
def test_an_edit_needs_an_approval_if_the_setting_says_so(asked_for: bool) -> None:
    limits = RedriveSettings(approve_edits=asked_for)
    assert needs_approval(limits, requested("shop", replacement=Replacement(edited="0" * 64))) is asked_for
    assert not needs_approval(limits, requested("shop"))


@pytest.mark.parametrize(
    ("events", "course"),
    [
        ([], Course(State.AWAITING)),
        ([approved("ben")], Course(State.RUNNING, "ben")),
        ([approved("anna")], Course(State.AWAITING)),
        ([approved("ben"), approved("eve")], Course(State.RUNNING, "ben")),
        ([changed(State.RUNNING)], Course(State.AWAITING)),
        ([changed(State.PAUSED)], Course(State.AWAITING)),
        ([changed(State.FINISHED)], Course(State.AWAITING)),
        ([changed(State.CANCELLED), approved("ben")], Course(State.CANCELLED)),
        ([approved("ben"), changed(State.PAUSED), changed(State.RUNNING)], Course(State.RUNNING, "ben")),
        ([approved("ben"), changed(State.FINISHED), changed(State.RUNNING)], Course(State.FINISHED, "ben")),
    ],
)
def test_only_another_person_makes_an_awaiting_job_run(events: list[Approved | Changed], course: Course) -> None:
    found = first_course(JOB)
    for event in events:
        found = after(found, event, JOB)
    assert found == course


@pytest.mark.guarantee("R1.17")
@given(st.lists(EVENTS, max_size=8))
def test_no_sequence_of_events_runs_a_job_that_is_not_approved(events: list[Approved | Changed]) -> None:
    course = first_course(JOB)
    for event in events:
        before, course = course, after(course, event, JOB)
        assert course.approved_by != JOB.by
        if course.state in (State.RUNNING, State.PAUSED, State.FINISHED):
            assert course.approved_by is not None
        assert before.state not in ENDED or course == before


def test_an_approval_that_would_not_count_is_refused() -> None:
    require_awaiting(JOB, State.AWAITING, "ben")
    with pytest.raises(ConfigurationError, match="another person"):
        require_awaiting(JOB, State.AWAITING, "anna")
    with pytest.raises(ConfigurationError, match="it is running"):
        require_awaiting(JOB, State.RUNNING, "ben")


@pytest.mark.parametrize(
    ("bounds", "before", "limit"),
    [
        (Bounds(first=0, recent=7, end=10, position=10), 7, Limit.TIME),
        (Bounds(first=3, recent=7, end=10, position=7), 7, Limit.TIME),
        (Bounds(first=0, recent=None, end=10, position=10), 10, Limit.END),
        (Bounds(first=0, recent=None, end=10, position=12), 10, Limit.END),
        (Bounds(first=0, recent=7, end=10, position=6), 6, Limit.POSITION),
        (Bounds(first=0, recent=None, end=10, position=9), 9, Limit.POSITION),
        (Bounds(first=3, recent=3, end=10, position=10), 3, Limit.TIME),
        (Bounds(first=3, recent=7, end=10, position=1), 3, Limit.POSITION),
        (Bounds(first=3, recent=7, end=10, position=None), 3, Limit.POSITION),
        (Bounds(first=0, recent=None, end=0, position=None), 0, Limit.END),
    ],
)
def test_a_prefix_ends_at_what_is_recent_or_not_read(bounds: Bounds, before: int, limit: Limit) -> None:
    assert prefix(bounds) == Prefix(bounds.first, before, limit)


offsets = st.integers(0, 20)


@given(st.builds(Bounds, offsets, st.none() | offsets, offsets, st.none() | offsets))
def test_no_prefix_has_what_is_recent_or_not_read(bounds: Bounds) -> None:
    asked = prefix(bounds)
    limits = [bounds.end, bounds.recent, bounds.first if bounds.position is None else bounds.position]
    assert all(offset < limit for offset in asked.offsets for limit in limits if limit is not None)
    assert all(offset >= bounds.first for offset in asked.offsets)


@pytest.mark.parametrize(
    ("first_open", "first_unknown", "found"),
    [
        (None, None, None),
        (5, None, None),
        (None, 6, None),
        (1, None, None),
        (4, None, (4, Obstacle.OPEN)),
        (2, 3, (2, Obstacle.OPEN)),
        (3, 2, (2, Obstacle.NOT_IN_TABLES)),
        (None, 4, (4, Obstacle.NOT_IN_TABLES)),
    ],
)
def test_an_open_or_unknown_record_forbids_a_prefix(
    first_open: int | None, first_unknown: int | None, found: tuple[int, Obstacle] | None
) -> None:
    assert obstacle(Prefix(2, 5, Limit.TIME), first_open, first_unknown) == found
