"""Do the sinks run that a new source has to wait for? One that is held or has failed would be waited for in vain."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wait_registry.cli.connect.caught_up import SinksBehind
from wait_registry.cli.connect.connector_state import ConnectorState
from wait_registry.cli.connect.place import keeps_view
from wait_registry.cli.connect.sink_lag import sink_topics
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.settings.root import Settings


def require_sinks_at_work(states: Iterable[ConnectorState], settings: Settings, applied: Collection[str] = ()) -> None:
    """Refuse a new source beside sinks of its view that stand still. Pure.

    Args:
        states: all connectors that are there.
        settings: which topics the view is made of; sinks of others are none of ours.
        applied: names of those that are applied now, which restarts them if they have failed.

    Raises:
        SinksBehind: one is held or has failed; the message says how it goes on.
    """
    viewed = {settings.wait.topic, *dead_letter_topics(settings, "sink")}
    refused = [
        f"{state.name} is {_stands_still(state)}"
        for state in states
        if keeps_view(state.config) and viewed & set(sink_topics(state.config))
        if state.held or (state.failed and state.name not in applied)
    ]
    if refused:
        raise SinksBehind(
            "nothing was changed: no source is made before its sinks have shown what stands in the log, or what was "
            f"finished long ago would be exported. {' '.join(refused)} Then run this again"
        )


def _stands_still(state: ConnectorState) -> str:
    path = f"/connectors/{state.name}"
    if state.held:
        return f"{state.state}: let it go on with PUT {path}/resume of the REST API."
    restart = f"POST {path}/restart?includeTasks=true&onlyFailed=true"
    return f"FAILED ({'; '.join(state.failures())}): mend that, and apply its file again or {restart}."
