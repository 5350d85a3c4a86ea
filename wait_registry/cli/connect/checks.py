"""What `waitreg connect apply` refuses by the settings and by the connectors that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from wait_registry.cli.connect.caught_up import SinksBehind
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.roles import asks_by_id, exports, keeps_tables, registries, sink_topics, works
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind


def require_place(connectors: Iterable[Connector], settings: Settings) -> None:
    """Refuse connectors in a place that the settings give to another. Pure.

    Raises:
        ConfigurationError: our sink keeps the view, or our sweeper exports; or a source would pass over rows.
    """
    for connector in connectors:
        if keeps_tables(connector.config):
            _require_no_other_sink(connector, settings)
        if exports(connector.config):
            _require_no_sweeper(connector, settings)
            _require_steady_view(connector, settings)


def _require_no_other_sink(connector: Connector, settings: Settings) -> None:
    # With `waitreg sink` it would bring back deleted rows, and the sweeper would trust a position that no longer moves.
    if settings.sink.kind is not SinkKind.CONNECT:
        raise ConfigurationError(
            f"sink.kind is {settings.sink.kind.value}: one sink keeps the view, and {connector.name} would be a second "
            "one. Stop `waitreg sink`, then set sink.kind=connect here, for the sweeper and for everything else that "
            "reads these settings"
        )


def _require_no_sweeper(connector: Connector, settings: Settings) -> None:
    if settings.sweeper.kind is not SweeperKind.CONNECT:
        raise ConfigurationError(
            f"sweeper.kind is {settings.sweeper.kind.value}: one service exports expired registrations, and "
            "alongside `waitreg sweeper` "
            f"{connector.name} would export everything twice. Stop `waitreg sweeper`, then set sweeper.kind=connect "
            "here and for everything else that reads these settings"
        )


def _require_steady_view(connector: Connector, settings: Settings) -> None:
    # A Connect sink that reads a stretch of the log again shows an older state of a row for a moment. A source that
    # asks by ID in that moment doesn't see the row's newer registration, and never asks for it again.
    if settings.sink.kind is SinkKind.CONNECT and asks_by_id(connector.config):
        raise ConfigurationError(
            f"{connector.name} asks for rows by their ID, and alongside a Kafka Connect sink (sink.kind=connect) a row "
            "may be hidden for a moment: it would be passed over for good. Use `--source debezium`, which reads every "
            "row of the outbox, or keep the view with `waitreg sink`"
        )


def require_no_rivals(connectors: Iterable[Connector], states: Iterable[ConnectorState]) -> None:
    """Refuse connectors that would do what one of another name does already, or is about to. Pure.

    Args:
        connectors: what is to be put in place.
        states: all connectors that are there, running or not: one that is stopped may be resumed.

    Raises:
        ConfigurationError: two would do one work.
    """
    wanted = list(connectors)
    there = {state.name: works(state.config) for state in states}
    # What is applied replaces what is there under its name.
    there |= {connector.name: works(connector.config) for connector in wanted}
    for connector in wanted:
        for name, done in there.items():
            shared = works(connector.config) & done
            if name != connector.name and shared:
                raise _refusal(connector.name, name, min(work.what for work in shared))


def _refusal(name: str, other: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"nothing was changed: {other} {what}, and {name} would be a second one that does: resolved rows would come "
        f"back, or everything would be exported twice. Keep one: give the file the name {other}, which continues where "
        f"it is, or `waitreg connect remove {other}` first"
    )


# What is only paused keeps its task, which may continue to fill the outbox.
_AT_REST: Final = "STOPPED"


def require_no_source_with_new_sinks(connectors: Iterable[Connector], states: Iterable[ConnectorState]) -> None:
    """Refuse sinks that don't exist yet while a source of their registry runs.

    A new sink reads the log from its start, and for hours shows what was finished long ago. A new source waits for it;
    one that runs doesn't.

    Args:
        connectors: what is to be put in place.
        states: all connectors that are there.

    Raises:
        ConfigurationError: a source runs, or would once it is fixed.
    """
    there = list(states)
    names = {state.name for state in there}
    new = [one for one in connectors if keeps_tables(one.config) and one.name not in names]
    for state in there:
        if state.state == _AT_REST:
            continue
        read = registries(state.config, "expired_outbox")
        for sink in new:
            if read & registries(sink.config):
                raise ConfigurationError(
                    f"nothing was changed: {state.name} exports what the view shows, and until {sink.name}, which "
                    "isn't there yet, has read the log that is what was finished long ago. `waitreg connect remove` "
                    "the sources, then apply sinks and sources together: the source is made once the sinks have "
                    "read the log"
                )


def require_sinks_at_work(states: Iterable[ConnectorState], settings: Settings, applied: Collection[str] = ()) -> None:
    """Refuse a new source while sinks of its tables have stopped or failed.

    Args:
        states: all connectors that are there.
        settings: which topics the view is made of; sinks of others are none of ours.
        applied: names of those that are applied now, which restarts them if they have failed.

    Raises:
        SinksBehind: one is held or has failed; the message says how to continue.
    """
    viewed = {settings.wait.topic, *dead_letter_topics(settings, "sink")}
    refused = [
        f"{state.name} is {_why_stopped(state)}"
        for state in states
        if keeps_tables(state.config) and viewed & set(sink_topics(state.config))
        if state.held or (state.failed and state.name not in applied)
    ]
    if refused:
        raise SinksBehind(
            "nothing was changed: no source is made before its sinks have read the log, or registrations that were "
            f"settled long ago would be exported. {' '.join(refused)} Then run this again"
        )


def _why_stopped(state: ConnectorState) -> str:
    path = f"/connectors/{state.name}"
    if state.held:
        return f"{state.state}: resume it with PUT {path}/resume of the REST API."
    restart = f"POST {path}/restart?includeTasks=true&onlyFailed=true"
    return f"FAILED ({'; '.join(state.failures())}): fix that, and apply its file again or {restart}."
