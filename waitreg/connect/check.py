"""`waitreg connect check`: refuse connectors that would export twice, too early, or something that is settled."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from wait_registry.errors import ConfigurationError
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.command import Command, Invocation
from waitreg.connect.caught_up import Report, await_sinks
from waitreg.connect.conflicts import require_no_conflict, require_place
from waitreg.connect.connector_file import Connector, fill_in, plain_secrets
from waitreg.connect.our_services import OurServices
from waitreg.connect.rest import ConnectRest
from waitreg.connect.roles import exports, keeps_tables
from waitreg.connect.state import ConnectorState


@click.command(
    "check",
    cls=Command,
    examples=(
        "waitreg connect check wait.sink.debezium dead_letter.sink.debezium --set sink.kind=connect",
        "waitreg connect check expired.source.debezium --set sweeper.kind=connect",
        "waitreg connect check my.sink.json --set connect.url=https://connect-1:8083",
    ),
)
@click.argument("connectors", metavar="CONNECTOR...", nargs=-1, required=True)
@click.pass_obj
def command(invocation: Invocation, connectors: tuple[str, ...]) -> int:
    """Check that connectors may be created now.

    CONNECTOR is one of this project's, such as wait.sink.debezium, or a file of yours. Run the check before you create
    or change a connector, and again for each: it reads the settings, the connectors of the workers (connect.url) and
    the tables, and changes nothing.

    A sink needs sink.kind=connect. If a sink of ours ran before, run `waitreg rebuild --set sink.kind=connect` once. A
    source needs sweeper.kind=connect, and may be created when the sinks have read the wait topic. So the check of a new
    source waits until they have read what is there now. If a sink makes no progress, it ends with 1; fix the sink, then
    run the check again.

    It refuses a second sink for the same tables, a second source for the same outbox, whatever its name, and connectors
    alongside a running sink or sweeper of ours or the state that one has left.
    """
    settings = invocation.settings()
    filled = fill_in(connectors, settings)
    for sentence in plain_secrets(filled):
        print(sentence, file=sys.stderr)
    check_connectors(filled, settings, _waiting)
    for connector in filled:
        print(f"{connector.name} may be created or changed now")
    return 0


def _waiting(sink: str, details: str) -> None:
    print(f"waiting for {sink}: {details}", flush=True)


def check_connectors(connectors: Sequence[Connector], settings: Settings, report: Report) -> None:
    """Return once these connectors may be created or changed now, sinks before sources.

    Raises:
        ConfigurationError: they contradict the settings, other connectors, or a sink or sweeper of ours that has run.
        WorkerUnavailable: no worker answers; try again.
        SinksBehind: a sink makes no progress, so no source may be created; try again.
    """
    require_place(connectors, settings)
    ours = OurServices(settings)
    if any(exports(connector.config) for connector in connectors):
        ours.require_no_sweeper_at_work()
    if settings.sink.kind is SinkKind.CONNECT and any(
        exports(connector.config) or keeps_tables(connector.config) for connector in connectors
    ):
        ours.require_no_sink_position()
    states = ConnectRest(settings.connect).states()
    require_no_conflict(connectors, states)
    # Only a new source exports what the tables show now; one that exists has a position.
    new = [connector for connector in connectors if exports(connector.config) and connector.name not in states]
    if new:
        ours.require_no_stale_slot(new)
        _require_sinks(connectors, states)
        await_sinks(states.values(), settings, ours, report)


def _require_sinks(connectors: Sequence[Connector], states: Mapping[str, ConnectorState]) -> None:
    """Refuse new sources whose sink is checked with them: it doesn't exist yet, so that it has read nothing."""
    for connector in connectors:
        if keeps_tables(connector.config) and connector.name not in states:
            raise ConfigurationError(
                f"{connector.name} doesn't exist yet, and a source may be created only when its sinks have read the "
                "log: check and create the sinks, then check the sources"
            )
