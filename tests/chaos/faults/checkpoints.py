"""Faults of a sink's disk: its checkpoint is lost or torn while it is down."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service
from tests.chaos.stage import Scene

# A sink that has just been started has none yet.
CHECKPOINT_WITHIN_S = 60.0
LOOK_S = 0.1


def delete(scene: Scene, fault: PlannedFault) -> str:
    """Kill the sink, delete its checkpoint, start it again after a while."""

    def delete_all(folder: Path) -> str:
        count = len(_files(folder))
        shutil.rmtree(folder)
        return f"{count} files were deleted" if count and not folder.exists() else ""

    return _while_down(scene, fault, delete_all)


def truncate(scene: Scene, fault: PlannedFault) -> str:
    """Kill the sink, cut every file of its checkpoint in half, start it again after a while."""

    def cut_in_half(folder: Path) -> str:
        files = [file for file in _files(folder) if file.stat().st_size > 1]
        for file in files:
            with file.open("r+b") as torn:
                torn.truncate(file.stat().st_size // 2)
        return f"{len(files)} files were cut in half" if files else ""

    return _while_down(scene, fault, cut_in_half)


def _while_down(scene: Scene, fault: PlannedFault, damage: Callable[[Path], str]) -> str:
    deadline = time.monotonic() + CHECKPOINT_WITHIN_S
    # A sink that makes its checkpoint again in this very moment has none: it is tried again.
    while (service := _with_checkpoint(scene, fault, deadline)) is not None:
        with service.lock:
            scene.begins(fault)
            try:
                if service.running:
                    service.kill()
                folder = scene.place.checkpoints_of(service.name)
                proof = damage(folder) if folder.exists() else ""
                scene.pause(fault.for_s)
            finally:
                service.start()
        if proof:
            return f"{service.name}: {proof}"
    return ""


def _with_checkpoint(scene: Scene, fault: PlannedFault, deadline: float) -> Service | None:
    """Return the target, or the other sink when that one is the one that works: a standby has no checkpoint."""
    target = scene.services[fault.target]
    sinks = [target, *(service for service in scene.services.values() if service.kind == "sink")]
    while time.monotonic() < deadline and not scene.ended.is_set():
        for sink in sinks:
            if sink.running and _files(scene.place.checkpoints_of(sink.name)):
                return sink
        scene.pause(LOOK_S)
    return None


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()] if folder.exists() else []
