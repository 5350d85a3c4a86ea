"""A fault that fails halfway leaves nothing behind and makes its run void; each says when it really began."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos import load, run
from tests.chaos.drawing import schedule_of
from tests.chaos.faults import checkpoints, downstream, processes, servers
from tests.chaos.faults.at_once import kill_everything, kill_group
from tests.chaos.faults.catalogue import Fault
from tests.chaos.load import Load
from tests.chaos.run import FaultBroke
from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError


class Victim:
    """A service, or a server, that is taken down and brought back as real ones are."""

    def __init__(self, name: str) -> None:
        self.name, self.kind = name, name.partition("-")[0]
        self.lock = threading.RLock()
        self.pid, self.port, self.ports = 2**22 + 1, 1, [1]  # nobody's
        self.running, self.frozen, self.behaviour = True, False, ""

    def start(self) -> None:
        self.running = True

    def kill(self) -> int:
        self.running = False
        return self.pid

    def stop(self) -> int:
        self.running = False
        return 0

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self) -> None:
        self.frozen = False

    pause, resume = freeze, thaw

    def tree(self) -> list[Any]:
        return []

    def request(self, method: str, path: str, body: str) -> tuple[int, str]:
        self.behaviour = body
        return 200, ""

    @property
    def healed(self) -> bool:
        return self.running and not self.frozen and "hang" not in self.behaviour


def scene(tmp_path: Path) -> Scene:
    """Return a run in which no fault can last: something breaks while it does."""
    names = ("processor-1", "processor-2", "sink-1", "sweeper-1")
    services = {name: Victim(name) for name in names}

    def breaks(seconds: float) -> None:
        raise OSError("no more files can be opened")

    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "offsets").write_text("1")
    return Scene(
        stage=cast(Any, SimpleNamespace(stack=SimpleNamespace(broker=Victim("broker"), postgres=Victim("postgres")))),
        place=cast(Any, SimpleNamespace(checkpoints_of=lambda name: folder, calls=tmp_path / "calls.jsonl")),
        schedule=cast(
            Any,
            SimpleNamespace(
                seed=7,
                mood=SimpleNamespace(mixture="100%:5ms", failures=""),
                names_of=lambda kind: [name for name in names if name.startswith(kind)],
            ),
        ),
        services=cast(Any, services),
        downstream=cast(Any, Victim("downstream")),
        visitor=cast(Any, None),
        visitors=[],
        ended=cast(Any, SimpleNamespace(is_set=lambda: False, wait=breaks)),
    )


FAULTS: list[tuple[Fault, str, str]] = [
    (processes.kill, "kill", "sink-1"),
    (processes.terminate, "terminate", "sweeper-1"),
    (processes.freeze, "freeze", "sink-1"),
    (checkpoints.delete, "delete_checkpoint", "sink-1"),
    (checkpoints.truncate, "truncate_checkpoint", "sink-1"),
    (servers.kill_server, "kill", "broker"),
    (servers.stop_server, "stop", "broker"),
    (servers.freeze_server, "freeze", "postgres"),
    (kill_group, "kill", "group"),
    (kill_everything, "kill", "everything"),
    (downstream.gone, "gone", "downstream"),
    (downstream.hangs, "hang", "downstream"),
]


@pytest.mark.parametrize(("does", "name", "target"), FAULTS, ids=lambda part: part if isinstance(part, str) else "")
def test_whatever_breaks_meanwhile_its_victims_go_on(
    does: Fault, name: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "stopped", lambda tree: "stopped")
    monkeypatch.setattr(servers, "stopped", lambda tree: "stopped")
    played, fault = scene(tmp_path), PlannedFault(0, name, target, 1)
    with pytest.raises(OSError, match="no more files"):
        does(played, fault)
    stack = played.stage.stack
    everybody: list[Any] = [*played.services.values(), played.downstream, stack.broker, stack.postgres]
    assert [victim.name for victim in everybody if not victim.healed] == []
    assert fault in played.began_ms
    assert not any(lock.locked() for lock in played.locks.values())


class Waits:
    """A load that is over when it is waited for, which it must not be when a fault broke."""

    def __enter__(self) -> Waits:
        return self

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        self.given_up = kind

    def wait(self) -> None:
        return


def acted(monkeypatch: pytest.MonkeyPatch, does: Callable[[Scene, PlannedFault], str], publishing: Waits) -> list[Any]:
    """Have one fault done by `run._act`."""
    planned = PlannedFault(0.0, "kill", "sink-1", 0.1)
    monkeypatch.setattr(run, "fault_of", lambda fault: does)
    schedule = SimpleNamespace(load=SimpleNamespace(aborts=False), faults=[planned])
    nobody = cast(Any, None)
    played = Scene(nobody, nobody, cast(Any, schedule), {}, nobody, nobody, [], threading.Event())
    return run._act(played, cast(Load, publishing))


def test_a_run_whose_fault_broke_is_void_before_anything_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(scene: Scene, fault: PlannedFault) -> str:
        raise OSError("no more files can be opened")

    publishing = Waits()
    with pytest.raises(FaultBroke, match=r"kill of sink-1 .*: OSError: no more files"):
        acted(monkeypatch, breaks, publishing)
    assert publishing.given_up is FaultBroke, "a load does not wait for a broker that never comes again"


def test_a_fault_lasts_from_when_it_has_its_victim_not_from_when_it_looks_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began: list[int] = []

    def hunts(scene: Scene, fault: PlannedFault) -> str:
        time.sleep(0.1)  # others have the lock
        began.append(time.time_ns() // 1_000_000)
        scene.begins(fault)
        began.append(time.time_ns() // 1_000_000)
        time.sleep(0.05)
        scene.begins(fault)  # again: a first victim had nothing to take
        return "gone"

    (done,) = acted(monkeypatch, hunts, Waits())
    assert began[0] <= done.began_ms <= began[1]
    assert done.ended_ms - done.began_ms >= 50


def test_who_found_no_victim_lasted_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    (done,) = acted(monkeypatch, lambda scene, fault: "", Waits())
    assert (done.happened, done.began_ms) == ("", done.ended_ms)


def test_a_load_goes_on_after_an_outage_but_not_when_its_run_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def unanswered(settings: object, plan: object, progress: object, stopping: Callable[[], bool]) -> None:
        tries.append(1)
        time.sleep(0.01)
        raise TransientError("no answer from Kafka")

    monkeypatch.setattr(load, "run_load", unanswered)
    settings = SimpleNamespace(model_copy=lambda update: None)
    place = SimpleNamespace(settings=settings, input="orders", manifest=None)
    publishing = Load(cast(Any, place), schedule_of(7), "127.0.0.1:1", threading.Event())
    with pytest.raises(FaultBroke), publishing:
        wait_until(lambda: len(tries) > 3, 20, "tries")
        raise FaultBroke("kill of broker")
