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
from waitreg.redrive.approval import require_awaiting, to_send, with_approval
from waitreg.redrive.prefix_cut import Limit, Obstacle, Prefix, obstacle, prefix
from waitreg.redrive.progress import ENDED, begun
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
    assert with_approval(RedriveSettings(approve_above=above), job).approval is needs
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
    edited = requested("shop", replacement=Replacement(edited="0" * 64))
    assert with_approval(limits, edited).approval is asked_for
    assert not with_approval(limits, requested("shop")).approval


@pytest.mark.parametrize(
    ("events", "state", "approved_by"),
    [
        ([], State.AWAITING, None),
        ([approved("ben")], State.RUNNING, "ben"),
        ([approved("anna")], State.AWAITING, None),
        ([approved("ben"), approved("eve")], State.RUNNING, "ben"),
        ([changed(State.RUNNING)], State.AWAITING, None),
        ([changed(State.PAUSED)], State.AWAITING, None),
        ([changed(State.FINISHED)], State.AWAITING, None),
        ([changed(State.CANCELLED), approved("ben")], State.CANCELLED, None),
        ([approved("ben"), changed(State.PAUSED), changed(State.RUNNING)], State.RUNNING, "ben"),
        ([approved("ben"), changed(State.FINISHED), changed(State.RUNNING)], State.FINISHED, "ben"),
    ],
)
def test_only_others_make_a_job_run(events: list[Approved | Changed], state: State, approved_by: str | None) -> None:
    found = begun(JOB)
    for event in events:
        found = found.after(event, 1)
    assert (found.state, found.approved_by) == (state, approved_by)


@pytest.mark.guarantee("R1.17")
@given(st.lists(EVENTS, max_size=8))
def test_no_sequence_of_events_runs_a_job_that_is_not_approved(events: list[Approved | Changed]) -> None:
    found = begun(JOB)
    for event in events:
        before, found = found, found.after(event, 1)
        assert found.approved_by != JOB.by
        if found.state in (State.RUNNING, State.PAUSED, State.FINISHED):
            assert found.approved_by is not None
        assert before.state not in ENDED or found == before


def test_an_approval_that_would_not_count_is_refused() -> None:
    require_awaiting(begun(JOB), "ben")
    with pytest.raises(ConfigurationError, match="another person"):
        require_awaiting(begun(JOB), "anna")
    with pytest.raises(ConfigurationError, match="it is running"):
        require_awaiting(begun(requested("shop")), "ben")


@pytest.mark.parametrize(
    ("bounds", "before", "limit"),  # the first offset, what is recent, the end, and the position
    [
        ((0, 7, 10, 10), 7, Limit.TIME),
        ((3, 7, 10, 7), 7, Limit.TIME),
        ((0, None, 10, 10), 10, Limit.END),
        ((0, None, 10, 12), 10, Limit.END),
        ((0, 7, 10, 6), 6, Limit.POSITION),
        ((0, None, 10, 9), 9, Limit.POSITION),
        ((3, 3, 10, 10), 3, Limit.TIME),
        ((3, 7, 10, 1), 3, Limit.POSITION),
        ((3, 7, 10, None), 3, Limit.POSITION),
        ((0, None, 0, None), 0, Limit.END),
    ],
)
def test_a_prefix_ends_at_a_limit(bounds: tuple[int, int | None, int, int | None], before: int, limit: Limit) -> None:
    assert prefix(*bounds) == Prefix(bounds[0], before, limit)


offsets = st.integers(0, 20)


@given(offsets, st.none() | offsets, offsets, st.none() | offsets)
def test_no_prefix_has_recent_or_unread_records(first: int, recent: int | None, end: int, position: int | None) -> None:
    asked = prefix(first, recent, end, position)
    limits = [end, recent, first if position is None else position]
    assert all(offset < limit for offset in asked.offsets for limit in limits if limit is not None)
    assert all(offset >= first for offset in asked.offsets)


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
