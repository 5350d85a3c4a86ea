"""What counts as a proof that a fault happened, and what doesn't."""

from __future__ import annotations

import os
import struct
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.faults import storm
from tests.chaos.faults.at_once import kill_group
from tests.chaos.faults.downstream import _felt
from tests.chaos.faults.passers import Passers
from tests.chaos.faults.processes import terminate
from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service
from tests.support.kafka_requests import PRODUCE, Requests
from wait_registry.demo.calls import ABORTED, Call, CallLog
from wait_registry.errors import TransientError

BEGAN_MS, ENDED_MS = 5_000, 9_000
CALL = Call(1, 6_000, 6_100, 6.0, 6.1, None, None, None, None, None, 503, "")


@pytest.mark.parametrize(
    ("calls", "happened"),
    [
        ([CALL], True),
        ([CALL, replace(CALL, status=ABORTED)], True),
        ([replace(CALL, status=ABORTED)], False),
        ([replace(CALL, status=200)], False),
        ([CALL, replace(CALL, status=200)], False),
        ([CALL, replace(CALL, status=200, started_ms=BEGAN_MS - 1)], True),
        ([replace(CALL, started_ms=BEGAN_MS - 1)], False),
        ([replace(CALL, started_ms=ENDED_MS + 1)], False),
        ([], False),
    ],
)
def test_a_downstream_failed_when_calls_that_came_meanwhile_did_and_none_succeeded(
    calls: list[Call], happened: bool, tmp_path: Path
) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        for call in calls:
            log.append(call)
    assert bool(_felt(path, BEGAN_MS, ENDED_MS, 503)) is happened


def test_without_a_call_there_is_no_proof(tmp_path: Path) -> None:
    assert _felt(tmp_path / "none.jsonl", BEGAN_MS, ENDED_MS, 503) == ""


class Process:
    """A service that never gets ready, or has ended by itself."""

    def __init__(self, *, ready: bool, running: bool) -> None:
        self.lock = threading.RLock()
        self.pid = 2**22 + 1  # nobody's
        self.running = running
        self.noticed = self.stopped = False
        self._ready = ready

    def ready(self) -> bool:
        return self._ready

    def start(self) -> None:
        return

    def stop(self) -> int | None:
        self.stopped = True
        return 0 if self.running else None

    def kill(self) -> int:
        return self.pid

    def notice_end(self) -> None:
        self.noticed = True


def scene(**services: Process) -> Scene:
    """Return what these faults need of a run."""
    made = SimpleNamespace(
        services=services, ended=threading.Event(), pause=lambda seconds: None, begins=lambda fault: None
    )
    return cast(Scene, made)


@pytest.mark.parametrize(("ready", "running"), [(True, True), (False, True), (False, False)])
def test_a_visitor_is_ended_whether_it_came_to_work_or_not(
    ready: bool, running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storm, "READY_WITHIN_S", 0.05)
    visitor, looks = Process(ready=ready, running=running), Passers(lambda: ["visitor"])
    storm._leave(scene(), cast(Service, visitor), looks)
    assert visitor.noticed is not running, "an end that nobody asked for is looked at"


def test_a_visitor_is_ended_also_when_nobody_can_be_asked_about_the_group() -> None:
    def fails() -> list[str]:
        raise ValueError("no JSON")

    visitor = Process(ready=True, running=True)
    with pytest.raises(ValueError, match="no JSON"):
        storm._leave(scene(), cast(Service, visitor), Passers(fails))
    assert visitor.stopped


@pytest.mark.parametrize(
    ("looks", "passed"),
    [
        ([{"a"}, {"a", "v"}, {"a"}], 1),
        ([{"a"}, {"a", "v"}, {"a", "w"}, {"a"}], 2),
        ([{"a"}, {"a"}, {"a"}], 0),
        ([{"a"}, {"a", "v"}, {"a", "v"}], 0),
        ([{"a"}, {"b"}, {"b"}], 0),
        ([{"a", "b"}, {"a"}], 0),
        ([{"a"}, {"a", "v"}, None], 0),
        ([None, {"a"}, {"a", "v"}, None, {"a"}], 1),
    ],
)
def test_passed_has_who_came_after_the_first_look_and_is_gone_by_the_last(
    looks: list[set[str] | None], passed: int
) -> None:
    answers = iter(looks)

    def members() -> set[str]:
        answer = next(answers)
        if answer is None:
            raise TransientError("no answer")
        return answer

    passers = Passers(members)
    for _ in looks[:-1]:
        passers.look()
    assert passers.look_until(1, 0, threading.Event()) == passed


@pytest.mark.parametrize("running", [True, False])
def test_who_had_ended_before_was_not_ended(running: bool) -> None:
    company = {"sink-1": Process(ready=True, running=running)}
    assert bool(terminate(scene(**company), PlannedFault(0, "terminate", "sink-1", 0))) is running


@pytest.mark.parametrize("happened", [True, False])
def test_a_group_was_killed_when_none_of_its_processors_is_left(happened: bool) -> None:
    company = {f"processor-{number}": Process(ready=True, running=True) for number in (1, 2)}
    company["processor-2"].pid = 2**22 + 1 if happened else os.getpid()
    names = SimpleNamespace(names_of=lambda kind: list(company))
    made = SimpleNamespace(services=company, schedule=names, pause=lambda seconds: None, begins=lambda fault: None)
    assert bool(kill_group(cast(Scene, made), PlannedFault(0, "kill", "group", 0))) is happened
    assert not any(process.lock._is_owned() for process in company.values())  # type: ignore[attr-defined]


FRAMES = st.lists(st.tuples(st.integers(0, 80), st.binary(max_size=300)), min_size=1, max_size=6)


@given(FRAMES, st.lists(st.integers(1, 90), min_size=1))
def test_requests_are_told_apart_wherever_their_bytes_are_cut(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    sent = b"".join(struct.pack(">ih", 2 + len(body), key) + body for key, body in frames)
    requests = Requests()
    while sent:
        for cut in cuts:
            requests.feed(sent[:cut])
            sent = sent[cut:]
    assert requests.seen == {key for key, _ in frames}


def test_a_body_is_taken_for_no_request() -> None:
    requests = Requests()
    requests.feed(struct.pack(">ih", 2 + 6, 3) + struct.pack(">ih", 2, PRODUCE))
    assert requests.seen == {3}


@given(st.binary(max_size=200))
def test_another_protocol_stops_nothing(data: bytes) -> None:
    Requests().feed(data)
