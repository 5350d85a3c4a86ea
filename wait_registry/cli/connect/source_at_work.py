"""Does a source read the outbox while the view is about to be made anew? It would export what is finished by now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.connector_state import ConnectorState
from wait_registry.cli.connect.place import keeps_view
from wait_registry.cli.connect.rivals import works
from wait_registry.errors import ConfigurationError

# What is only paused keeps its task, which may go on filling the outbox.
_AT_REST: Final = "STOPPED"
_OUTBOX: Final = "expired_outbox"


def require_no_source_beside_new_sinks(connectors: Iterable[Connector], states: Iterable[ConnectorState]) -> None:
    """Refuse sinks that aren't there yet beside a source of their registry. Pure.

    A new sink reads the log from its start, and for hours shows what was finished long ago. A new source waits for it;
    one that runs doesn't.

    Args:
        connectors: what is to be put in place.
        states: all connectors that are there.

    Raises:
        ConfigurationError: a source runs, or would if somebody mended it.
    """
    there = list(states)
    names = {state.name for state in there}
    new = [one for one in connectors if keeps_view(one.config) and one.name not in names]
    for state in there:
        if state.state == _AT_REST:
            continue
        read = _registries(state.config, _OUTBOX)
        for sink in new:
            if read & _registries(sink.config):
                raise ConfigurationError(
                    f"nothing was changed: {state.name} exports what the view shows, and until {sink.name}, which "
                    "isn't there yet, has read the log that is what was finished long ago. `waitreg connect remove` "
                    "the sources, then apply sinks and sources together: the source is made once the sinks have shown "
                    "what stands in the log"
                )


def _registries(config: Mapping[str, str], table: str = "") -> set[tuple[str, str]]:
    """Return database and schema of the tables that a connector works on, of those called so if a name is given."""
    split = [(work.database, *work.table.replace('"', "").rpartition(".")[::2]) for work in works(config)]
    return {(database, schema) for database, schema, name in split if table in ("", name)}
