"""The design as it is, in slices and as a whole, each in bounds within which every state is visited."""

from __future__ import annotations

from dataclasses import replace

from tests.model.explorer import Model
from tests.model.processing.slice import Processing
from tests.model.sweeping.slice import Sweeping
from tests.model.viewing.slice import Viewing
from tests.model.whole import Whole

_ONE_RECORD = Processing(records=1, revocations=0)
_FED = Sweeping(waits=(), appends=0, restores=0)

DESIGN: tuple[Model, ...] = (
    Processing(
        "processors: 1 record, a loss, a revocation, a renewal", records=1, losses=1, renewals=1, flush_fails=True
    ),
    Processing("processors: 2 records, one oversized, a revocation", oversized=(1,)),
    Processing("processors: 2 records, a loss", losses=1, revocations=0, failing=False),
    Processing("processors: 2 records, a revocation, a renewal, no fault", renewals=1, crashes=0, failing=False),
    Processing("processors: 2 records, one deadly, a revocation", deadly=(0,), crashes=0, failing=False),
    Processing("processors: 1 record, 2 die, what they have sent lands later", records=1, revocations=0, lingering=2),
    Processing(
        "processors: 2 records, one dies, what it has sent lands later",
        revocations=0,
        crashes=1,
        lingering=1,
        failing=False,
    ),
    Viewing("sinks: 2, a restore", ticks=0, rebuilds="never"),
    Viewing("sinks: 2, a rebuild", appends=2, ticks=0, restores=0),
    Viewing("sinks: 2, 2 wait ids", ids=2, ticks=0, restores=0, rebuilds="never"),
    Viewing(
        "sink: compaction, a sweeper's look", sinks=1, transactions=False, restores=0, rebuilds="never", sweeps=True
    ),
    Viewing("sink: compaction, a restore, rebuilds", appends=2, sinks=1, transactions=False, rebuilds="when refused"),
    Viewing("sink: compaction, a rebuild at any time", appends=2, sinks=1, transactions=False, restores=0),
    Viewing(
        "sink: compaction before its first start",
        sinks=1,
        transactions=False,
        restores=0,
        rebuilds="never",
        late_first_start=True,
    ),
    Sweeping("sweepers: 2, an append, a restore", appends=1),
    Sweeping("sweepers: 2, 2 appends", restores=0),
    Sweeping("sweepers: 2, 2 wait ids", waits=(0, 1), appends=0, restores=0),
    Sweeping("sweeper: 2 wait ids, an append", waits=(0, 1), sweepers=1, appends=1, restores=0),
    Whole("whole: no process dies but sweepers", replace(_ONE_RECORD, crashes=0), replace(_FED, faults=-1)),
    Whole("whole: a processor dies", replace(_ONE_RECORD, crashes=1, failing=False), replace(_FED, faults=-1)),
    Whole(
        "whole: a processor dies, what it has sent lands later",
        replace(_ONE_RECORD, crashes=1, lingering=1),
        replace(_FED, sweepers=1),
    ),
    Whole(
        "whole: a processor is taken for dead",
        replace(_ONE_RECORD, crashes=0, losses=1, failing=False),
        replace(_FED, sweepers=1),
    ),
)

# Minutes, not seconds: `python -m tests.model --wide`.
WIDE: tuple[Model, ...] = (
    Processing("processors: 2 records, 2 revocations, no fault", revocations=2, crashes=0, failing=False),
    Processing("processors: 2 records, a loss, a revocation", losses=1, failing=False),
    Processing("processors: 1 record, 2 losses, 2 revocations", records=1, losses=2, revocations=2, flush_fails=True),
    Viewing("sinks: 2, compaction, rebuilds", restores=0, rebuilds="when refused"),
    Viewing("sinks: 2, 4 appends, a restore", appends=4, ticks=0, rebuilds="never"),
    Viewing(
        "sink: compaction over a longer time, a sweeper's look",
        sinks=1,
        ticks=3,
        transactions=False,
        restores=0,
        rebuilds="never",
        sweeps=True,
    ),
    Sweeping("sweepers: 2, 2 appends, a restore"),
    Sweeping("sweepers: 2, 2 wait ids, an append", waits=(0, 1), appends=1, restores=0),
    Whole("whole: a processor dies or fails", replace(_ONE_RECORD, crashes=1), replace(_FED, faults=-1)),
)
