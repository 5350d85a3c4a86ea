"""Copies of a world with live objects, and the same digest for two worlds that no rule can distinguish.

A moment counts by how far it is ahead, and moments in the past by their age as far as a rule asks for it.
"""

# ruff: noqa: SLF001 - what matters of an object is in its private fields
from __future__ import annotations

import copyreg
import io
import math
import pickle
from array import array
from collections import deque
from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b
from types import MethodType
from typing import Any, Final

from processor.flow.concurrency import FixedLimit
from processor.flow.slots import Slots
from processor.protocol.commits import ANSWER_LIMIT_S, Commits
from processor.protocol.engine import Engine
from processor.protocol.record import UNSTARTED, Entry, State
from processor.protocol.registering import OWNERSHIP_S, Rules
from processor.protocol.results import RetryDelays
from tests.simulation.messages import taken
from tests.simulation.process import BELIEF_S, REGISTER_AFTER_S
from tests.simulation.world import Nature, World
from wait_registry.records.wait_record import RegistrationMode

# Moments, and up to which age a rule tells them apart; a little more where the limit itself counts as younger.
_LITTLE: Final = 0.01
_MOMENTS: Final = {
    "polled_s": REGISTER_AFTER_S,
    "confirmed_s": OWNERSHIP_S + _LITTLE,
    "sent_s": ANSWER_LIMIT_S,
    "at_s": OWNERSHIP_S + _LITTLE,
    "start_by_s": _LITTLE,
    "_overdue_from_s": _LITTLE,
    "arrives_s": 0.0,
    "lost_s": BELIEF_S + _LITTLE,
    "_due_s": 0.0,
    "_not_before_s": 0.0,
    "next_due_s": 0.0,
    "_tick_due_s": 0.0,
    "_slow_due_s": 0.0,
}
# What doesn't change, what only telemetry reads, and what no small world fills.
_IGNORED: Final = frozenset(
    {"_random", "_now", "_pace", "_steps", "_rules", "settled", "_limit", "_world", "_interval_s", "_after_s"}
    | {"_drains_s", "_prefetch", "size", "expires_at_ms", "registered_s", "expires_s", "expires_ms", "error"}
    # A process's number says the same, and there is one partition.
    | {"mode", "alive", "stopping", "place", "_bound", "_calm", "_recorded"}
)
_HELD: Final = frozenset({State.HELD, State.RENEWING})
_UNREGISTERED: Final = frozenset({State.POLLED, State.READY, State.RUNNING})
_WAITING: Final = UNSTARTED | {State.RENEWING}
_fields: dict[type, tuple[str, ...]] = {}
# What copies share: values that never change, and the engine's methods, also such as a removal has put in their place.
_kept: dict[int, Any] = {}
_methods: dict[type, Any] = {}


def _keep(value: Any) -> tuple[Any, ...]:
    _kept[id(value)] = value
    return _known, (id(value),)


def _known(number: int) -> Any:
    return _kept[number]


def _reduce_engine(engine: Engine) -> tuple[Any, ...]:
    steps = vars(engine)["_steps"]
    _methods.update((kind, method.__func__) for kind, method in steps.items())
    owners = {kind: method.__self__ for kind, method in steps.items()}
    return object.__new__, (Engine,), {**vars(engine), "_steps": owners}, None, None, _restore_engine


def _restore_engine(engine: Engine, state: dict[str, Any]) -> None:
    steps = {kind: MethodType(_methods[kind], owner) for kind, owner in state["_steps"].items()}
    vars(engine).update(state, _steps=steps)


_IMMUTABLE: Final = (Rules, FixedLimit, RetryDelays, State, Nature, RegistrationMode)
_TABLE: Final = {**copyreg.dispatch_table, Engine: _reduce_engine, **dict.fromkeys(_IMMUTABLE, _keep)}


def packed(scene: Any) -> bytes:
    """Return a copy of a scene, for `pickle.loads`."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _TABLE
    pickler.dump(scene)
    return buffer.getvalue()


def digest(parts: Iterable[Any], now_s: float) -> bytes:
    """Return the same for scenes that nothing can tell apart."""
    walk = _Walk(now_s)
    for part in parts:
        walk.value(part)
    return blake2b(repr(walk.found).encode(), digest_size=16).digest()


class _Walk:
    """Lists all that is reached, objects and wait IDs by the number of their first coming."""

    def __init__(self, now_s: float) -> None:
        self.found: list[Any] = []
        self._now_s = now_s
        self._numbers: dict[Any, int] = {}

    def value(self, value: Any) -> None:
        """List a value with all that it refers to."""
        kind = type(value)
        if kind in _ATOMS or (kind is tuple and value and type(value[0]) is str):
            self.found.append(value)
        elif kind in (tuple, list, deque):
            self.found.append(len(value))
            for item in value:
                self.value(item)
        elif kind is dict:
            self.found.append(len(value))
            for key, item in value.items():
                self.value(key)
                self.value(item)
        elif kind in (set, frozenset):
            self.value(sorted(value, key=_order))
        elif isinstance(value, Enum):
            self.found.append(value.value)
        elif isinstance(value, (array, bytearray)):
            self.found.append(tuple(value))
        elif kind is float:
            assert math.isinf(value), f"a moment without a name: {value}"
            self.found.append(value)
        elif isinstance(value, tuple):
            self._named(value, value._fields)  # type: ignore[attr-defined]
        else:
            self._object(value)

    def _object(self, value: Any) -> None:
        if isinstance(value, World):
            self.value(_of_world(value))
        elif (number := self._numbers.get(id(value))) is not None:
            self.found.append(number)
        else:
            self._numbers[id(value)] = len(self._numbers)
            self._named(value, self._told_apart_by(value))

    def _named(self, value: Any, names: Iterable[str]) -> None:
        for name in names:
            item = getattr(value, name)
            if name in _MOMENTS and item is not None:
                self.found.append(round(max(item - self._now_s, -_MOMENTS[name]), 3))
            elif name == "wait_id":
                self.found.append(self._numbers.setdefault(item, len(self._numbers)))
            elif name == "_known":
                self.value({entry for entry in item if entry.state in _HELD})
            elif name not in _IGNORED:
                self.value(item)

    def _told_apart_by(self, value: Any) -> tuple[str, ...]:
        """Return the fields of an object that matter now."""
        names = _fields.get(type(value)) or _fields_of(value)
        if isinstance(value, Entry):
            unneeded = {"polled_s"} if value.state not in _UNREGISTERED else set()
            unneeded |= {"lifetime"} if value.state not in _WAITING else set()
        elif isinstance(value, Commits):
            unneeded = {"sent_s"} if not value._sent else set()
        elif isinstance(value, Slots):
            unneeded = {"_overdue_from_s"} if not value.waiting else set()
        else:
            return names
        return tuple(name for name in names if name not in unneeded)


_ATOMS: Final = frozenset({int, str, bool, bytes, type(None)})


def _fields_of(value: Any) -> tuple[str, ...]:
    names = sorted(getattr(value, "__slots__", None) or vars(value))
    return _fields.setdefault(type(value), tuple(name for name in names if name not in _IGNORED))


def _order(value: Any) -> Any:
    return (taken(value).generation, value.offset) if isinstance(value, Entry) else repr(value)


def _of_world(world: World) -> tuple[Any, ...]:
    """Return what the oracle asks of a world."""
    deadly = {record: calls for record, calls in world.calls.items() if world.nature(record) is Nature.DEADLY}
    return (
        [nature.value for log in world.logs.values() for _, nature in log],
        world.produced,
        world.committed,
        world.owner,
        world.generation,
        [entry._replace(process=0) for entry in world.last.values()],
        set(world.dead_letters),
        set(world.done),
        deadly,
        world.may_expire,
        world.may_be_left,
        world.registered_late,
    )
