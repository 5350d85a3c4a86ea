"""What is kept of a measurement: one turn, or the end of a round, each with where and on what it was measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Origin:
    """What figures must have in common to stand in one table.

    Attributes:
        commit: of the product, see `commit.py`.
        machine: CPU, cores, memory and operating system in words, see `machine.py`.
        full: whether the sizes are those of a FULL run.
        versions: of Java, Python, broker and packages in words, see `machine.py`.
    """

    commit: str
    machine: str
    full: bool
    versions: str = ""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where a line of the ledger comes from.

    Attributes:
        run: id of the `python -m bench` that measured it.
        origin: see there.
        versions: of Java, Python, broker, Postgres and the packages that matter.
        date: when it ended, ISO 8601 in UTC.
        command: that measured it.
    """

    run: str
    origin: Origin
    versions: Mapping[str, str]
    date: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one contender, measured or failed.

    Attributes:
        stamp: where it comes from.
        row: number of the row.
        round: number of the round, from 1.
        case: name of the case.
        contender: name of the contender.
        turn: number of its turn in this round, from 1.
        attempt: 1, or 2 where the first one failed.
        figures: what was measured; empty where it failed.
        failure: why it failed; empty where it was measured.
        seconds: how long it took, set-up included.
        lacks: what the contender doesn't do.
        version: of what was measured, where the contender says it.
    """

    stamp: Stamp
    row: int
    round: int
    case: str
    contender: str
    turn: int
    attempt: int
    figures: Mapping[str, float]
    failure: str
    seconds: float
    lacks: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """A round that was played to its end, whatever failed in it.

    Attributes:
        stamp: where it comes from.
        row: number of the row.
        round: number of the round, from 1.
        seconds: how long it took, start and end of the stack included.
        failures: what failed for good, a sentence each.
        broken: why the round couldn't go on (no broker, say), so that turns are missing; else empty.
        noise: how the machine was before it, where it wasn't quiet; else empty.
    """

    stamp: Stamp
    row: int
    round: int
    seconds: float
    failures: tuple[str, ...] = ()
    broken: str = ""
    noise: str = ""

    @property
    def complete(self) -> bool:
        """Whether everything was measured; else the round is measured again."""
        return not self.failures and not self.broken


Entry: TypeAlias = Turn | RoundEnd
KINDS: Mapping[str, type[Turn] | type[RoundEnd]] = {"turn": Turn, "round": RoundEnd}


def checked_figures(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures as plain floats.

    Raises:
        ValueError: there are none, or one isn't a finite number.
    """
    if not figures:
        raise ValueError("saw no figures, expected at least one")
    for name, value in figures.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"expected a finite number for {name}, saw {value!r}")
    return {name: float(value) for name, value in figures.items()}


def as_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as the object that the ledger holds, flat."""
    values = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    stamp: Stamp = values.pop("stamp")
    kind = "turn" if isinstance(entry, Turn) else "round"
    return {
        "kind": kind,
        **values,
        "run": stamp.run,
        "command": stamp.command,
        "date": stamp.date,
        "commit": stamp.origin.commit,
        "machine": stamp.origin.machine,
        "full": stamp.origin.full,
        "measured_with": stamp.origin.versions,
        "versions": dict(stamp.versions),
    }


def from_json(values: Mapping[str, Any]) -> Entry:
    """Return the entry that an object of the ledger holds.

    Raises:
        ValueError: it isn't one.
    """
    try:
        origin = Origin(values["commit"], values["machine"], values["full"], values.get("measured_with", ""))
        stamp = Stamp(values["run"], origin, values["versions"], values["date"], values.get("command", ""))
        made = KINDS[values["kind"]]
        own = {field.name: values[field.name] for field in dataclasses.fields(made) if field.name != "stamp"}
    except (KeyError, TypeError) as error:
        raise ValueError(f"no measurement: {error!r}") from error
    if "failures" in own:
        own["failures"] = tuple(own["failures"])
    return made(stamp=stamp, **own)
