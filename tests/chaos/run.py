"""One random run: the services, the load, the faults, the end, and the verdict on all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.chaos.checker.verdict import Verdict, check
from tests.chaos.companion import Supervisor
from tests.chaos.endings import unexpected_endings
from tests.chaos.faults.catalogue import FAULTS
from tests.chaos.history.history import FaultDone, History
from tests.chaos.history.reading import read_history
from tests.chaos.history.tables import Snapshots
from tests.chaos.history.watch import OpenTransactionError, Tap, Watch
from tests.chaos.load import Aborts, Load
from tests.chaos.resources import Resources, held
from tests.chaos.schedule import SERVICES, PlannedFault, Schedule
from tests.chaos.service import Service, kill_all
from tests.chaos.settling import settle
from tests.chaos.stage import VISITOR, Place, Scene, Stage, settings_of

# Up to four JVMs start at once, on a very busy machine in more than five minutes.
READY_S = 600.0
# All has to settle: two minutes without any change are too long, and so are six in all.
STILL_S = 120.0
SETTLE_S = 360.0
POLL_S = 0.3
# A commit that overtakes its wait record is ahead of it for as long as the record is held: many polls see it then.
POLL_COMMITS_S = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    ``endings`` says which processes ended as they must not, ``unsettled`` what was left, if anything, ``unseen`` whose
    memory was hardly sampled.
    """

    schedule: Schedule
    directory: Path
    verdict: Verdict
    faults: Sequence[FaultDone]
    endings: Sequence[str]
    unsettled: str
    unseen: str
    seconds: float

    @property
    def void(self) -> str:
        """Why nothing can be concluded; empty when something can."""
        return "; ".join(filter(None, (self.verdict.void, self.unseen)))


class Interrupted(Exception):
    """The run was interrupted: nothing was concluded."""


class Stuck(Exception):
    """A service did not come to work, or a transaction stayed open: a guarantee is broken."""


def play(stage: Stage, schedule: Schedule, directory: Path, interrupted: threading.Event) -> Outcome:
    """Play one schedule and judge it.

    Raises:
        Interrupted: ``interrupted`` was set meanwhile.
        Stuck: it can't be judged to its end, and that itself breaks a guarantee.
        Exception: a fault, the load or an observer failed, which makes the run void, whatever else it shows.
    """
    began = time.monotonic()
    partitions = schedule.load.input_partitions
    with stage.place(directory, settings_of(schedule), partitions) as place, ExitStack() as resources:
        tap = Tap(place.settings)
        scene = _scene(stage, place, schedule, tap, interrupted)
        company = [*scene.services.values(), scene.downstream]
        resources.callback(lambda: kill_all([*company, *scene.visitors]))
        supervisor = resources.enter_context(Supervisor(company))
        load, snapshots = Load(place, schedule, interrupted), Snapshots(place.settings)
        with Watch(place.settings, POLL_COMMITS_S) as watch, tap:
            # The called service is not at fault: it is there before all others, and so is the backlog.
            load.publish_backlog()
            _start(scene, [scene.downstream])
            _start(scene, company)
            with Resources(list(scene.services.values())) as watched, snapshots:
                faults = _act(scene, load)
                unsettled = settle(place, STILL_S, SETTLE_S, interrupted)
                unseen = watched.missing()
            supervisor.end()
            _end_all(company)
            if interrupted.is_set():
                raise Interrupted
            verdict = _judge(scene, _read(scene, watch, tap), faults, watched, snapshots)
        return Outcome(
            schedule,
            directory,
            verdict,
            faults,
            unexpected_endings([*company, *scene.visitors], faults),
            unsettled,
            unseen,
            time.monotonic() - began,
        )


def _scene(stage: Stage, place: Place, schedule: Schedule, tap: Tap, interrupted: threading.Event) -> Scene:
    services = {name: stage.service(place, name, modes=schedule.modes) for name in schedule.names_of(*SERVICES)}
    visitors: list[Service] = []

    def visitor() -> Service:
        visitors.append(stage.service(place, f"visitor-{len(visitors) + 1}", VISITOR, schedule.modes))
        return visitors[-1]

    downstream = stage.downstream(place, schedule.latencies, schedule.failures)
    return Scene(stage, place, schedule, services, downstream, visitor, visitors, tap, interrupted)


def _start(scene: Scene, company: Sequence[Service]) -> None:
    """Start services and wait until they work, a sink with its first batches: a fault is to hit what works."""
    for service in company:
        service.start()
    deadline = time.monotonic() + READY_S
    while (missing := [one.name for one in company if not one.at_work()]) and not scene.ended.is_set():
        if time.monotonic() > deadline:
            raise Stuck(f"{', '.join(missing)} not at work within {READY_S:g} s")
        scene.pause(POLL_S)


def _act(scene: Scene, load: Load) -> list[FaultDone]:
    """Publish the load and do the faults at their times; return when the load is out and all is healed."""
    done: list[FaultDone] = []
    began = time.monotonic()

    def do(planned: PlannedFault) -> None:
        scene.pause(max(0.0, began + planned.at_s - time.monotonic()))
        if scene.ended.is_set():
            return
        try:
            proof = FAULTS[planned.name](scene, planned)
        except Exception as error:
            error.add_note(f"in the fault {planned}")
            raise
        ended_ms = time.time_ns() // 1_000_000
        # A fault without victim never began, and has no proof.
        began_ms, concerned = scene.began_ms.get(planned, ended_ms), scene.concerned.get(planned, ())
        done.append(FaultDone(planned.name, planned.target, began_ms, ended_ms, proof, concerned))

    with ExitStack() as publishing:
        if scene.schedule.load.aborts:
            publishing.enter_context(Aborts(scene.place))
        publishing.enter_context(load)
        _run_all([partial(do, planned) for planned in scene.schedule.faults])
        load.wait()
    return sorted(done, key=lambda fault: fault.began_ms)


def _run_all(tasks: Sequence[Callable[[], object]]) -> None:
    """Run tasks at the same time; once all have ended, raise the first error."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(task) for task in tasks]
    for task in running:
        task.result()


def _read(scene: Scene, watch: Watch, tap: Tap) -> History:
    try:
        return read_history(scene.place.settings, scene.place.directory, watch.polls, tap)
    except OpenTransactionError as error:
        raise Stuck(str(error)) from error


def _judge(scene: Scene, history: History, faults: Sequence[FaultDone], watched: Resources, seen: Snapshots) -> Verdict:
    modes, taken = scene.schedule.modes, seen.taken
    return check(replace(history, faults=faults, modes=modes, samples=held(watched.readings), snapshots=taken))


def _end_all(company: Sequence[Service]) -> None:
    """End all at once, services before the downstream that they call."""
    _run_all([service.stop for service in company if service.name != "downstream"])
    for service in company:
        service.stop()
