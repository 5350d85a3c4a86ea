"""The small worlds of the processor, and its safeguards that one or two records show."""

from __future__ import annotations

from functools import partial

from tests.simulation import removals
from tests.simulation.exhaustive import NEVER_ENDS
from tests.simulation.processor_world import CALLED_AGAIN, LEFT_TO_EXPIRE, REGISTERED_LATE, SHORT_S, ProcessorWorld
from tests.simulation.safeguards import PROCESSOR
from tests.simulation.small_worlds import Safeguard, Small
from tests.simulation.sweeper_world import SweeperWorld
from tests.simulation.whole_world import EXPORTED_ALONE, EXPORTED_TOO, WholeWorld
from tests.simulation.world import Committed, Nature
from wait_registry.settings.processor import Ordering, RegistrationMode

_FAST, _FAILING = (Nature.FAST,), (Nature.FAILING,)
_TOO_LARGE, _DEADLY = (Nature.TOO_LARGE,), (Nature.DEADLY,)
_ENDING = (Nature.FAST, Nature.FAILING, Nature.TOO_LARGE, Nature.MALFORMED)
_EVERY = (*_ENDING, Nature.DEADLY)
_eager, _deferred, _off = (
    partial(ProcessorWorld, modes=(mode,), before=Committed(0, 8, mode.value)) for mode in RegistrationMode
)
_deferred = partial(_deferred, passes=(SHORT_S,), late=True)
_two = (_FAST, _FAST)
_after_eager = partial(_off, before=Committed(0, 8, "eager"), natures=_two, ordering=Ordering.PARTITION, answered=True)

WORLDS: tuple[Small, ...] = (
    partial(
        _eager,
        "eager: 1 record, a death",
        natures=(_EVERY,),
        deaths=1,
        reaches=("REGISTERING", "HELD", "PUBLISHING", "PUBLISHING_REGISTERED", LEFT_TO_EXPIRE),
    ),
    partial(_eager, "eager: 1 record, a move", late=True, moves=1, reaches=("RUNNING_REGISTERED", REGISTERED_LATE)),
    partial(_eager, "eager: 1 record, a loss", losses=1, reaches=("HELD", REGISTERED_LATE)),
    partial(
        _eager,
        "eager: 2 records",
        natures=((*_FAST, *_FAILING), (*_FAST, *_TOO_LARGE)),
        reaches=("READY_REGISTERED", "RENEWING"),
    ),
    partial(
        _deferred,
        "deferred: 1 record, a death",
        natures=((*_FAST, *_FAILING, *_TOO_LARGE),),
        deaths=1,
        reaches=("RUNNING_REGISTERING", "DONE_REGISTERING", "PUBLISHING_REGISTERING", CALLED_AGAIN, LEFT_TO_EXPIRE),
    ),
    partial(_deferred, "deferred: 1 record, a move", moves=1, reaches=(CALLED_AGAIN, REGISTERED_LATE)),
    partial(_deferred, "deferred: 2 records", natures=_two, reaches=("READY_REGISTERING", "READY_REGISTERED")),
    partial(
        _off,
        "off: 1 record, a death, a move",
        natures=((*_FAST, *_FAILING),),
        deaths=1,
        moves=1,
        reaches=(CALLED_AGAIN,),
    ),
    partial(_off, "off: 1 record, a loss", losses=1, reaches=("RUNNING",)),
    partial(
        _off,
        "off, by partition: 2 records, a move",
        natures=((*_FAST, *_FAILING), _FAST),
        slots=2,
        ordering=Ordering.PARTITION,
        moves=1,
        reaches=("READY", "PUBLISHING", CALLED_AGAIN),
    ),
    partial(
        _after_eager,
        "off after eager, by partition: 2 records, a move",
        moves=1,
        reaches=("RENEWING", "RUNNING_REGISTERED", CALLED_AGAIN),
    ),
    partial(_off, "off: 2 records, a death", natures=_two, deaths=1, reaches=("READY", CALLED_AGAIN)),
    partial(
        ProcessorWorld,
        "deferred, then off: 1 record, a death",
        (RegistrationMode.DEFERRED, RegistrationMode.OFF),
        passes=(SHORT_S,),
        late=True,
        deaths=1,
        reaches=("RUNNING_REGISTERED", CALLED_AGAIN),
    ),
    partial(
        WholeWorld,
        _eager(name="whole: 1 record, a death", natures=((*_FAST, *_DEADLY),), deaths=1, answered=True),
        SweeperWorld(waits=(), sweepers=1, faults=1, appends=0, restores=0),
        reaches=(EXPORTED_ALONE, EXPORTED_TOO),
    ),
)

# Too large for each run of the tests.
LARGE_WORLDS: tuple[Small, ...] = (
    partial(_eager, "eager: 2 records, a move, calm", natures=_two, late=True, moves=1, calm=True),
    partial(_eager, "eager: 2 records, a death", natures=(_FAST, _FAILING), deaths=1, reaches=(CALLED_AGAIN,)),
    partial(_eager, "eager: 2 records, a move", natures=_two, late=True, moves=1, reaches=(CALLED_AGAIN,)),
    partial(_eager, "eager: 2 records, a loss", natures=_two, losses=1, reaches=(REGISTERED_LATE,)),
    partial(_deferred, "deferred: 1 record, a loss", losses=1, reaches=(REGISTERED_LATE,)),
    partial(_deferred, "deferred: 2 records, a death", natures=_two, deaths=1, reaches=(CALLED_AGAIN,)),
    partial(
        WholeWorld,
        _deferred(name="whole, deferred: 1 record, a death", deaths=1, answered=True),
        SweeperWorld(waits=(), sweepers=1, faults=0, appends=0, restores=0),
        reaches=(EXPORTED_ALONE, EXPORTED_TOO),
    ),
    partial(_off, "off: 2 records, a death, a loss", natures=_two, deaths=1, losses=1, reaches=(CALLED_AGAIN,)),
)

_moved = partial(_eager, "", late=True, moves=1, calm=True)
_CLAUSES = {safeguard.remove: safeguard.clause for safeguard in PROCESSOR}
ENGINE = tuple(
    Safeguard(remove, _CLAUSES[remove], world, breaks)
    for remove, world, breaks in (
        (removals.commit_waits_for_acknowledgment, partial(_eager, ""), "P2"),
        (removals.commit_is_contiguous, partial(_eager, "", natures=(_TOO_LARGE, _FAST)), "P2"),
        (removals.unregistrable_waits_for_letter, partial(_eager, "", natures=(_TOO_LARGE,), delays=1), "P2"),
        (removals.unregistrable_holds_the_commit, partial(_deferred, "", natures=(_TOO_LARGE,)), "P2"),
        (removals.late_refusal_settles, partial(_deferred, "", natures=(_TOO_LARGE,)), NEVER_ENDS),
        (removals.letter_of_unregistered_first, partial(_eager, "", natures=((Nature.MALFORMED,),)), "P2"),
        (removals.bound, partial(_eager, "", natures=_two, bounds=(1,)), "P7"),
        (removals.no_warm_up, partial(_deferred, "", deaths=1), "P1"),
        (removals.unknown_end_is_no_limit, partial(_deferred, "", deaths=1, unknown_ends=True), "P1"),
        (removals.switching_warms_up, WORLDS[-2], "P1"),
        (removals.held_waits_for_the_commit, partial(_eager, "", natures=(_DEADLY,)), "P1"),
        (removals.tombstone_waits_for_letter, partial(_eager, "", natures=(_FAILING,)), "P1"),
        (removals.outcome_waits_for_the_report, partial(_deferred, ""), "P1"),
        (removals.letter_waits_for_the_report, partial(_deferred, "", natures=(_FAILING,)), "P1"),
        (removals.wait_id_is_computed, partial(_eager, "", deaths=1), "P1"),
        (removals.no_tombstone_on_revoke, partial(_moved, natures=_two), "P1"),
        (removals.revoke_flushes, _moved, "P1"),
        (removals.commit_stops_at_unstarted, partial(_moved, natures=_two), "P1"),
        (removals.committed_is_kept, partial(_moved, natures=_two), "P1"),
        (removals.dropped_calls_are_cancelled, partial(_off, "", moves=1, calm=True), "P1"),
        (
            removals.bound_is_announced,
            partial(_deferred, "", bounds=(2, 1), before=Committed(0, 1, "deferred"), natures=(_FAST, _DEADLY)),
            "P1",
        ),
        (removals.renewal_is_the_next_owners, partial(_after_eager, "", losses=1), "O1"),
        (removals.overdue_is_renewed, partial(_eager, "", late=True), "P3"),
        (removals.registers_after_the_news, partial(_deferred, "", natures=_two, losses=1, slots=2), "P1"),
    )
)
