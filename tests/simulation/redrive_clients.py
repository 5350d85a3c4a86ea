"""The clients and the tables that the redrive's executor gets in its small worlds: each request is an effect."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

from pytest import MonkeyPatch

from tests.simulation.kafka_clients import GROUP, TARGET
from tests.simulation.replay import ask
from tests.simulation.wait_log import WAIT_IDS
from tests.support.jobs import requested
from wait_registry.dead_letters.outcome import Verdict
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.kafka.targets import Target
from wait_registry.records.operation import Event, JobEvent, Mark, Place, Requested, decode_event
from wait_registry.settings.tree import Settings
from waitreg.redrive import execution, executor
from waitreg.redrive.executor import Executor
from waitreg.redrive.job_decision import Candidate, Contents, Standing
from waitreg.redrive.progress import Progress, begun

SETTINGS: Final = Settings()
# What follows at once: what a listing and a poll bring is judged with it.
URGENT: Final = (("end", "poll"), ("poll", "check"), ("write", "commit"))


def job_of(name: str) -> Requested:
    """Return a job for all dead letters, one at a time."""
    return requested(GROUP, (f"group={GROUP}",), job=name)


class TableSnapshot:
    """The tables up to the sink's position: what that of redrive finds, from the events that the sink has read."""

    def __init__(self, _: Settings) -> None:
        self.topic_id = "id"
        self.start, events, self._letters = ask("tables")
        self._events: list[Event] = [decode_event(event) for event in events]

    def job(self, name: str) -> Progress | None:
        own = [event for event in self._events if isinstance(event, JobEvent) and event.job == name]
        if not own:
            return None
        assert isinstance(own[0], Requested)
        found = begun(own[0])
        for event in own[1:]:
            found = found.after(event, 0)  # only the check of outcomes asks what was sent
        return found

    def candidates(self, _: Any, ends: Any, after: Any) -> Iterator[Candidate]:
        for number in range(self._letters):
            record, cursor = Place("orders", 0, number), ("orders", 0, number, "orders.dlq", 0, number)
            if after is None or cursor > after:
                place = Place("orders.dlq", 0, number)
                wait_id = WAIT_IDS[number]
                standing = self._standing(wait_id, record)
                yield Candidate(
                    place, place, "failed", wait_id, GROUP, record, False, False, False, False, 1, cursor, standing
                )

    def _standing(self, wait_id: str, record: Place) -> Standing:
        marks = [event for event in self._events if isinstance(event, Mark) and event.wait_id == wait_id]
        return Standing("redriven", marks[-1].job, len(marks), len(marks)) if marks else Standing()

    def contents(self, candidates: Any) -> dict[Place, Contents]:
        return {candidate.place: _contents(candidate) for candidate in candidates}

    def close(self) -> None: ...


class OutcomeCheck:
    """Holds a job whenever the world says so: what it sees in the tables doesn't matter to what is sent."""

    def __init__(self, *_: Any) -> None: ...

    def canary_left(self, _: Any) -> None: ...

    def check(self, _: Any) -> Verdict:
        return Verdict(*ask("check"))


def _contents(candidate: Candidate) -> Contents:
    assert candidate.record is not None and candidate.wait_id is not None
    own = (candidate.wait_id, *candidate.record, None, None, candidate.wait_id)
    return Contents(None, None, "[]", *own, None, None, GROUP, None, 1)


_NEVER: Any = SimpleNamespace(is_set=lambda: False, wait=lambda _: False)
_STILL: Any = SimpleNamespace(monotonic=lambda: 0.0, now_ms=lambda: 0)


class Topics:
    """Every topic exists, with one partition."""

    def __init__(self, _: Any) -> None: ...

    def __call__(self, topic: str) -> Target:
        return Target(topic, 1, 1_000_000)

    def forget(self) -> None: ...


def install(patch: MonkeyPatch) -> None:
    """Give the redrive these clients; remove safeguards after that."""
    patch.setattr("waitreg.redrive.exact_marks.TableSnapshot", TableSnapshot)
    patch.setattr(executor, "OutcomeCheck", OutcomeCheck)
    for module in (executor, execution):
        patch.setattr(module, "log", SimpleNamespace(warning=lambda *_: None))
    patch.setattr(executor, "admin", lambda _: None)
    patch.setattr("waitreg.redrive.classifier.cluster_id", lambda _: "cluster")
    patch.setattr("waitreg.redrive.exact_marks.require_same_operations_topic", lambda *_: None)
    patch.setattr("waitreg.redrive.classifier.Targets", Topics)
    members = GroupDescription(True, {"member": frozenset({(TARGET, 0)})}, {}, {"member": "host"})
    patch.setattr("waitreg.redrive.classifier.describe_group", lambda *_: members)


def redrive(name: str) -> str:
    """Run an executor of a job to its end; return the job's state."""
    return Executor(SETTINGS, job_of(name), _NEVER, lambda _: None, _STILL).run().state.value
