"""Every fault by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tests.chaos.drawing import LINK_FAULTS
from tests.chaos.faults.downstream import fails, gone, hangs
from tests.chaos.faults.group import storm
from tests.chaos.faults.links import broken, hold_produce
from tests.chaos.faults.processes import freeze, kill, kill_everything, kill_group, kill_jvm, terminate
from tests.chaos.faults.servers import add, end_sessions, freeze_server, kill_server, stop_server
from tests.chaos.schedule import PlannedFault
from tests.chaos.stage import Scene
from wait_registry.demo.mixture import DROPPED

Fault = Callable[[Scene, PlannedFault], str]
"""Makes it happen, heals it, and returns the proof that it happened; an empty one when it didn't.

It says when it begins (`Scene.begins`), once it has its victim, and heals what it did also when it fails."""

SERVERS: Final = ("broker", "postgres")
_AT_ONCE: Final[Mapping[tuple[str, str], Fault]] = {
    ("kill", "group"): kill_group,
    ("kill", "everything"): kill_everything,
}
_OF_SERVERS: Final[Mapping[str, Fault]] = {"kill": kill_server, "stop": stop_server, "freeze": freeze_server}
_OTHERS: Final[Mapping[str, Fault]] = {
    "kill": kill,
    "freeze": freeze,
    "terminate": terminate,
    "kill_jvm": kill_jvm,
    "storm": storm,
    "end_sessions": end_sessions,
    "answer_503": partial(fails, status=503),
    "drop": partial(fails, status=DROPPED),
    "hang": hangs,
    "gone": gone,
    "add_partitions": add,
    "hold_produce": hold_produce,
    **{f"{how}_{server}_link": partial(broken, how=how, server=server) for how in LINK_FAULTS for server in SERVERS},
}


def fault_of(planned: PlannedFault) -> Fault:
    """Return what makes a planned fault happen; KeyError when there is no such fault."""
    at_once = _AT_ONCE.get((planned.name, planned.target))
    return at_once or (_OF_SERVERS if planned.target in SERVERS else {}).get(planned.name) or _OTHERS[planned.name]
