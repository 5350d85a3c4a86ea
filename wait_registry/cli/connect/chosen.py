"""Which connectors a command is about: those it names, those of the settings, or this project's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wait_registry.cli.connect.connector_file import NAMES
from wait_registry.cli.connect.connector_state import ConnectorState


@dataclass(frozen=True, slots=True)
class Chosen:
    """Connectors that are there, in the order asked for, and names of those that should be and aren't."""

    present: tuple[ConnectorState, ...]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, states: Mapping[str, ConnectorState], named: Sequence[str]) -> Chosen:
        """Choose among all connectors of the workers. Pure.

        Args:
            states: all that are there, by name.
            named: those asked for; when empty, this project's own, as far as they are there.
        """
        wanted = dict.fromkeys(named or NAMES)
        present = tuple(states[name] for name in wanted if name in states)
        return cls(present, tuple(name for name in wanted if name not in states) if named else ())


def not_looked_at(applied: Iterable[str], named: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each name that commands don't choose by themselves, with ``named`` as above. Pure."""
    for name in applied:
        if name not in (named or NAMES):
            yield (
                f"status, watch and remove don't look at {name} by themselves: list it in connect.connectors, along "
                "with whatever else they should look at"
            )
