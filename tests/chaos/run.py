"""One random run: the services, the load, the faults, the end, and the verdict on all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.checker.verdict import Verdict, check
from tests.chaos.companion import Samples, Supervisor
from tests.chaos.endings import Ending, unexpected_endings
from tests.chaos.faults.catalogue import fault_of
from tests.chaos.history.history import FaultDone, Limits, Look, Told
from tests.chaos.history.reading import Where, read_history
from tests.chaos.history.tables import Views
from tests.chaos.history.topics import OpenTransactionError
from tests.chaos.history.watch import Watch
from tests.chaos.load import Aborts, Load
from tests.chaos.resources import MOST_BYTES
from tests.chaos.schedule import SERVICES, PlannedFault, Schedule
from tests.chaos.service import Cause, Service, kill_all
from tests.chaos.settling import Patience, settle
from tests.chaos.stage import VISITOR, Place, Scene, Stage, settings_of

# Up to four JVMs start at once, on a busy machine in three minutes.
READY_S = 300.0
# All has to settle: two minutes without any change are too long, and so are six in all.
STILL_S = 120.0
SETTLE_S = 360.0
LOOK_S = 0.3
# A commit that overtakes its wait record is ahead of it for as long as the record is held: many looks see it then.
LOOK_AT_COMMITS_S = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    ``endings``: processes that ended as they must not; ``unsettled``: what was left, if any; ``unseen``: whose memory
    was hardly looked at.
    """

    schedule: Schedule
    directory: Path
    verdict: Verdict
    faults: Sequence[FaultDone]
    endings: Sequence[Ending]
    restarts: int
    unsettled: str
    unseen: str
    seconds: float

    @property
    def void(self) -> str:
        """Why nothing can be concluded; empty when something can."""
        return "; ".join(filter(None, (self.verdict.void, self.unseen)))

    @property
    def failed(self) -> bool:
        """Whether anything was broken, whatever became of the faults."""
        return bool(self.verdict.violations or self.endings or self.unsettled)


class Interrupted(Exception):
    """The run was interrupted: nothing was concluded."""


class FaultBroke(Exception):
    """A fault could not be done or healed: the run is void, whatever else it shows; the message names it."""


class Stuck(Exception):
    """A service did not come to work, or a transaction stayed open: a promise is broken, whatever else was to come."""


def play(stage: Stage, schedule: Schedule, directory: Path, broken_off: threading.Event) -> Outcome:
    """Play one schedule and judge it.

    Raises:
        Interrupted: ``broken_off`` was set meanwhile.
        Stuck: it can't be judged to its end, and that is itself a promise broken.
        FaultBroke: a fault failed. Any other exception, of the load or of who looks on, makes the run void too.
    """
    began = time.monotonic()
    overrides, partitions = settings_of(schedule), schedule.load.input_partitions
    with stage.place(directory, overrides, partitions) as place, ExitStack() as resources:
        scene = _scene(stage, place, schedule, broken_off)
        company = [*scene.services.values(), scene.downstream]
        resources.callback(lambda: kill_all([*company, *scene.visitors]))
        supervisor = resources.enter_context(Supervisor(company))
        load = Load(place, schedule, stage.stack.bootstrap_servers, broken_off)
        views = _views(place)
        where = Where.of(place.settings, place.directory)
        with Watch(where, LOOK_AT_COMMITS_S) as watch:
            _start_on_backlog(load, scene)
            _start(company, scene)
            with Samples(list(scene.services.values())) as samples, views:
                faults = _act(scene, load)
                unsettled = settle(stage, place, Patience(STILL_S, SETTLE_S), scene.ended)
                unseen = samples.missing()
        supervisor.end()
        _end_all(company)
        if broken_off.is_set():
            raise Interrupted
        everybody = [*company, *scene.visitors]
        return Outcome(
            schedule,
            directory,
            _judge(scene, where, watch.looks, faults, samples, views),
            faults,
            unexpected_endings(everybody, faults),
            sum(ended.cause is Cause.ITSELF for service in everybody for ended in service.exits),
            unsettled,
            unseen,
            time.monotonic() - began,
        )


def _scene(stage: Stage, place: Place, schedule: Schedule, broken_off: threading.Event) -> Scene:
    names = [name for kind in SERVICES for name in schedule.names_of(kind)]
    services = {name: stage.service(place, name) for name in names}
    visitors: list[Service] = []

    def visitor() -> Service:
        visitors.append(stage.service(place, f"visitor-{len(visitors) + 1}", VISITOR))
        return visitors[-1]

    downstream = stage.downstream(place, schedule.mood)
    return Scene(stage, place, schedule, services, downstream, visitor, visitors, broken_off)


def _start_on_backlog(load: Load, scene: Scene) -> None:
    """Have the log that is there before all services; what they will call is there too, since that isn't at fault."""
    scene.downstream.start()
    load.publish_backlog()
    _await(scene, lambda: "" if scene.downstream.at_work() else "downstream")


def _start(company: Sequence[Service], scene: Scene) -> None:
    """Start everything and wait until it is at work, a sink with its first batches: a fault is to hit what works."""
    for service in company:
        service.start()
    _await(scene, lambda: ", ".join(service.name for service in company if not service.at_work()))


def _await(scene: Scene, missing: Callable[[], str]) -> None:
    deadline = time.monotonic() + READY_S
    while (names := missing()) and not scene.ended.is_set():
        if time.monotonic() > deadline:
            raise Stuck(f"{names} not at work within {READY_S:g} s")
        scene.pause(LOOK_S)


def _views(place: Place) -> Views:
    return Views(place.settings.postgres.url.get_secret_value(), place.settings.postgres.schema_name)


def _act(scene: Scene, load: Load) -> list[FaultDone]:
    """Publish the load and do the faults at their times; return when the load is out and all is healed."""
    done: list[FaultDone] = []
    broke: list[tuple[PlannedFault, Exception]] = []
    began = time.monotonic()
    with ExitStack() as publishing:
        if scene.schedule.load.aborts:
            publishing.enter_context(Aborts(scene.place, scene.stage.stack.bootstrap_servers))
        publishing.enter_context(load)
        threads = [
            threading.Thread(target=_do, args=(scene, planned, began, done, broke), name=str(planned), daemon=True)
            for planned in scene.schedule.faults
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for planned, error in broke:
            raise FaultBroke(f"{planned}: {type(error).__name__}: {error}") from error
        load.wait()
    return sorted(done, key=lambda fault: fault.began_ms)


def _do(
    scene: Scene,
    planned: PlannedFault,
    began: float,
    done: list[FaultDone],
    broke: list[tuple[PlannedFault, Exception]],
) -> None:
    scene.pause(max(0.0, began + planned.at_s - time.monotonic()))
    if scene.ended.is_set():
        return
    try:
        proof = fault_of(planned)(scene, planned)
    except Exception as error:  # noqa: BLE001 - raised when the others are healed
        broke.append((planned, error))
        return
    ended_ms = _now_ms()
    # Who found no victim never began, and has no proof.
    done.append(FaultDone(planned.name, planned.target, scene.began_ms.get(planned, ended_ms), ended_ms, proof))


def _judge(
    scene: Scene, where: Where, looks: Sequence[Look], faults: Sequence[FaultDone], samples: Samples, views: Views
) -> Verdict:
    place, of_run = scene.place, scene.schedule.settings
    visitors = 3 if any(fault.name == "storm" for fault in faults) else 0
    limits = Limits(
        max_in_flight=of_run.max_in_flight,
        prefetch=of_run.prefetch_max,
        processes=of_run.processors + visitors,
        rss_bytes=MOST_BYTES,
        samples=samples.taken,
        prefetch_bytes=of_run.prefetch_max_bytes,
        chunk_rows=of_run.chunk_rows,
    )
    try:
        told = Told.of(place.settings)
        history = read_history(where, looks, faults=faults, limits=limits, told=told, views=views.taken)
    except OpenTransactionError as error:
        raise Stuck(str(error)) from error
    return check(history)


def _end_all(company: Sequence[Service]) -> None:
    """End all at once, services before the downstream that they call."""
    services = [service for service in company if service.name != "downstream"]
    threads = [threading.Thread(target=service.stop, name=f"end of {service.name}") for service in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for service in company:
        service.stop()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
