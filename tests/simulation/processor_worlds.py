"""The small worlds of the processor."""

from __future__ import annotations

from functools import partial

from tests.simulation.processor_world import CALLED_AGAIN, LEFT_TO_EXPIRE, REGISTERED_LATE, SHORT_S, ProcessorWorld
from tests.simulation.small_worlds import Small
from tests.simulation.sweeper_world import SweeperWorld
from tests.simulation.whole_world import EXPORTED_ALONE, EXPORTED_TOO, WholeWorld
from tests.simulation.world import Committed, Nature
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import Ordering

FAST, FAILING = (Nature.FAST,), (Nature.FAILING,)
TOO_LARGE, DEADLY = (Nature.TOO_LARGE,), (Nature.DEADLY,)
_ENDING = (Nature.FAST, Nature.FAILING, Nature.TOO_LARGE, Nature.MALFORMED)
_EVERY = (*_ENDING, Nature.DEADLY)
eager, deferred, off = (
    partial(ProcessorWorld, modes=(mode,), before=Committed(0, 8, mode.value)) for mode in RegistrationMode
)
deferred = partial(deferred, passes=(SHORT_S,), late=True)
switched = partial(
    ProcessorWorld,
    "deferred, then off: 1 record, a death",
    (RegistrationMode.DEFERRED, RegistrationMode.OFF),
    passes=(SHORT_S,),
    late=True,
    deaths=1,
    reaches=("RUNNING_REGISTERED", CALLED_AGAIN),
)
TWO = (FAST, FAST)
after_eager = partial(off, before=Committed(0, 8, "eager"), natures=TWO, ordering=Ordering.PARTITION, answered=True)

WORLDS: tuple[Small, ...] = (
    partial(
        eager,
        "eager: 1 record, a death",
        natures=(_EVERY,),
        deaths=1,
        reaches=("REGISTERING", "HELD", "PUBLISHING", "PUBLISHING_REGISTERED", LEFT_TO_EXPIRE),
    ),
    partial(eager, "eager: 1 record, a move", late=True, moves=1, reaches=("RUNNING_REGISTERED", REGISTERED_LATE)),
    partial(eager, "eager: 1 record, a loss", losses=1, reaches=("HELD", REGISTERED_LATE)),
    partial(
        eager,
        "eager: 2 records",
        natures=((*FAST, *FAILING), (*FAST, *TOO_LARGE)),
        reaches=("READY_REGISTERED", "RENEWING"),
    ),
    partial(
        deferred,
        "deferred: 1 record, a death",
        natures=((*FAST, *FAILING, *TOO_LARGE),),
        deaths=1,
        reaches=("RUNNING_REGISTERING", "DONE_REGISTERING", "PUBLISHING_REGISTERING", CALLED_AGAIN, LEFT_TO_EXPIRE),
    ),
    partial(deferred, "deferred: 1 record, a move", moves=1, reaches=(CALLED_AGAIN, REGISTERED_LATE)),
    partial(deferred, "deferred: 2 records", natures=TWO, reaches=("READY_REGISTERING", "READY_REGISTERED")),
    partial(
        off,
        "off: 1 record, a death, a move",
        natures=((*FAST, *FAILING),),
        deaths=1,
        moves=1,
        reaches=(CALLED_AGAIN,),
    ),
    partial(off, "off: 1 record and a marker, a move", late=True, markers=1, moves=1, reaches=(CALLED_AGAIN,)),
    partial(off, "off: 1 record, a loss", losses=1, reaches=("RUNNING",)),
    partial(
        off,
        "off, by partition: 2 records, a move",
        natures=((*FAST, *FAILING), FAST),
        slots=2,
        ordering=Ordering.PARTITION,
        moves=1,
        reaches=("READY", "PUBLISHING", CALLED_AGAIN),
    ),
    partial(
        after_eager,
        "off after eager, by partition: 2 records, a move",
        moves=1,
        reaches=("RENEWING", "RUNNING_REGISTERED", CALLED_AGAIN),
    ),
    partial(off, "off: 2 records, a death", natures=TWO, deaths=1, reaches=("READY", CALLED_AGAIN)),
    switched,
    partial(
        WholeWorld,
        eager(name="whole: 1 record, a death", natures=((*FAST, *DEADLY),), deaths=1, answered=True),
        SweeperWorld(waits=(), sweepers=1, faults=1, appends=0, restores=0),
        reaches=(EXPORTED_ALONE, EXPORTED_TOO),
    ),
)

# Too large for each run of the tests.
LARGE_WORLDS: tuple[Small, ...] = (
    partial(eager, "eager: 2 records, a move, calm", natures=TWO, late=True, moves=1, calm=True),
    partial(eager, "eager: 2 records, a death", natures=(FAST, FAILING), deaths=1, reaches=(CALLED_AGAIN,)),
    partial(eager, "eager: 2 records, a move", natures=TWO, late=True, moves=1, reaches=(CALLED_AGAIN,)),
    partial(eager, "eager: 2 records, a loss", natures=TWO, losses=1, reaches=(REGISTERED_LATE,)),
    partial(deferred, "deferred: 1 record, a loss", losses=1, reaches=(REGISTERED_LATE,)),
    partial(deferred, "deferred: 2 records, a death", natures=TWO, deaths=1, reaches=(CALLED_AGAIN,)),
    partial(
        WholeWorld,
        deferred(name="whole, deferred: 1 record, a death", deaths=1, answered=True),
        SweeperWorld(waits=(), sweepers=1, faults=0, appends=0, restores=0),
        reaches=(EXPORTED_ALONE, EXPORTED_TOO),
    ),
    partial(off, "off: 2 records, a death, a loss", natures=TWO, deaths=1, losses=1, reaches=(CALLED_AGAIN,)),
)
